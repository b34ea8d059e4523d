//! What a rule says at a place, before any report renders it.

use std::fmt;

use super::super::ir::facts::{Bytes, Confidence, MemorySpace, Operation, TrailStep};
use super::super::source::{Edit, Span};

/// Everything about a rule that is not code: the table, `explain`, SARIF and the configuration derive from it.
#[derive(Debug)]
pub struct RuleInfo {
    /// kebab-case, the pattern found: `bank-conflict`.
    pub name: &'static str,
    /// One line without a full stop.
    pub summary: &'static str,
    pub category: Category,
    pub default_level: Level,
    /// The version that added it.
    pub since: &'static str,
    /// The room's README.md: documentation, `explain` text, SARIF help.
    pub doc: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    Coalescing,
    Layout,
    Bank,
    Cache,
    Alias,
    /// The comments that silence findings; not about memory.
    Suppression,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Category::Coalescing => "coalescing",
            Category::Layout => "layout",
            Category::Bank => "bank",
            Category::Cache => "cache",
            Category::Alias => "alias",
            Category::Suppression => "suppression",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    Off,
    Note,
    Warning,
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Off => "off",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        })
    }
}

/// One finding, decided and worded. Order: file, start, rule, message.
#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: &'static RuleInfo,
    pub level: Level,
    /// Tight: the access, not its statement.
    pub span: Span,
    /// What, with the number: lower case, no full stop, names in backticks.
    pub message: String,
    /// Understandable alone, at the span.
    pub label: String,
    /// Why it costs.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
    /// Where each part of the address comes from; also other places of the same finding.
    pub trail: Vec<TrailStep>,
    /// The kernel as `inspect` names it; empty for host-side findings.
    pub kernel: String,
    /// `in[i * 32]`: white space folded; with rule, kernel and ordinal it is the fingerprint.
    pub access_text: String,
    pub numbers: Numbers,
    pub fix: Option<Fix>,
}

/// The numbers behind a finding. Sectors and wavefronts are averages per executed request of a warp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// `256`, `16x16`, with where it was read: `launch site`.
    pub launch_shape: Option<String>,
    pub launch_source: Option<String>,
    pub space: Option<MemorySpace>,
    pub operation: Option<Operation>,
    pub access_bytes: Option<Bytes>,
    pub lane_stride: Option<Bytes>,
    pub sectors: Option<f64>,
    pub ideal_sectors: Option<f64>,
    pub wavefronts: Option<f64>,
    pub ideal_wavefronts: Option<f64>,
    pub confidence: Option<Confidence>,
    pub assumptions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Applicability {
    /// Keeps behaviour; applied by `--fix`.
    Safe,
    /// Keeps results but changes resource use or needs a promise; applied by `--unsafe-fixes`.
    Unsafe,
    /// Shown, never applied.
    DisplayOnly,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    pub title: String,
    pub applicability: Applicability,
    /// Non-overlapping; may touch several files. Empty for a display-only text.
    pub edits: Vec<Edit>,
}
