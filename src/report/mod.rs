//! How findings are shown: to people (text, concise, grouped) and to other programs (everything else).
//!
//! Every renderer is a pure function from a [`Report`] to a string: no I/O, no terminal queries, no clock, so the
//! same input gives the same bytes. The machine formats have their own serialisable types with the versions they
//! promise; findings themselves are not serialisable.
//!
//! Lines and columns count from 1; columns are UTF-16 code units in every format but `rdjson`, which asks for bytes.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::ir::ast::Gap;
use super::lint::finding::{Finding, Level, RuleInfo};
use super::source::Sources;

mod numbers;
mod place;

pub mod concise;
pub mod text;

mod diff;
pub use diff::patch;

pub mod json;

mod line_hash;

pub mod sarif;

pub mod github;

pub mod gitlab;

mod xml;

pub mod junit;

pub mod checkstyle;

pub mod rdjson;

pub mod inspect;

/// What one run has to say.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    pub sources: &'a Sources,
    /// Sorted as reports list them: file, start, rule, message.
    pub findings: &'a [Finding],
    /// Findings silenced by a comment, each with the reason written there (may be empty). Shown where the format has
    /// a place for them. GitHub ignores SARIF suppressions and opens an alert for each, so pass them only on request.
    pub suppressed: &'a [(Finding, String)],
    pub gaps: &'a [Gap],
    /// The rules that ran, in any order.
    pub rules: &'a [&'static RuleInfo],
    /// The directory that relative source paths start from; absolute.
    pub working_dir: &'a Path,
    /// The repository (or project) root, absolute: machine formats name files relative to it.
    pub root: &'a Path,
    pub summary: Summary,
    /// SARIF category: what tells this run from others of the same tool on one commit. `None`: `cudalint`.
    pub category: Option<&'a str>,
    /// No result is above this level in SARIF: code scanning fails its own check for an error.
    pub sarif_max_level: Level,
}

/// What a run covered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub files: usize,
    pub kernels: usize,
    pub accesses: usize,
    /// Findings left out because a baseline has them.
    pub baselined: usize,
    /// Shown to people only; machine formats stay identical from run to run.
    pub elapsed: Option<Duration>,
}

impl Report<'_> {
    /// How many findings have this level.
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Full,
    Concise,
    Grouped,
    Json,
    Jsonl,
    Sarif,
    Github,
    Gitlab,
    Junit,
    Checkstyle,
    Rdjson,
}

impl Format {
    pub const ALL: [Format; 11] = [
        Format::Full,
        Format::Concise,
        Format::Grouped,
        Format::Json,
        Format::Jsonl,
        Format::Sarif,
        Format::Github,
        Format::Gitlab,
        Format::Junit,
        Format::Checkstyle,
        Format::Rdjson,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Full => "full",
            Format::Concise => "concise",
            Format::Grouped => "grouped",
            Format::Json => "json",
            Format::Jsonl => "jsonl",
            Format::Sarif => "sarif",
            Format::Github => "github",
            Format::Gitlab => "gitlab",
            Format::Junit => "junit",
            Format::Checkstyle => "checkstyle",
            Format::Rdjson => "rdjson",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    /// `text` is another name of `full`.
    fn from_str(name: &str) -> Result<Format, String> {
        let known = Format::ALL.into_iter().find(|format| format.name() == name);
        known.or((name == "text").then_some(Format::Full)).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("unknown format `{name}`; one of {}", names.join(", "))
        })
    }
}

/// The whole report in one format; ends with a line end unless it is empty. `style` matters to the formats for people.
pub fn render(report: &Report<'_>, format: Format, style: &text::Style) -> String {
    match format {
        Format::Full => text::render(report, style),
        Format::Concise => concise::render(report, style),
        Format::Grouped => concise::grouped(report, style),
        Format::Json => json::render(report),
        Format::Jsonl => json::lines(report),
        Format::Sarif => sarif::render(report),
        Format::Github => github::render(report),
        Format::Gitlab => gitlab::render(report),
        Format::Junit => junit::render(report),
        Format::Checkstyle => checkstyle::render(report),
        Format::Rdjson => rdjson::render(report),
    }
}

/// Where the documentation of a rule lies on the web, if the package names its repository.
fn rule_url(rule: &RuleInfo) -> Option<String> {
    let repository = env!("CARGO_PKG_REPOSITORY").trim_end_matches('/');
    let room = rule.name.replace('-', "_");
    let version = env!("CARGO_PKG_VERSION");
    (!repository.is_empty()).then(|| format!("{repository}/blob/v{version}/rules/{room}/README.md"))
}
