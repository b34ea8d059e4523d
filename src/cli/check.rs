//! `cudalint check`: from a project to findings that count.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Instant;

use super::super::ir::ast::Gap;
use super::super::lint::check::{Checked, Input, Settings};
use super::super::lint::finding::{Finding, RuleInfo};
use super::super::lint::rule::Rule;
use super::super::source::FileId;
use super::Engine;
use super::project::Project;
use super::settings::FileSettings;

/// What a check found, ready to be reported.
#[derive(Debug, Default)]
pub struct Outcome {
    /// With their levels, sorted as reports list them.
    pub findings: Vec<Finding>,
    pub suppressed: Vec<(Finding, String)>,
    pub gaps: Vec<Gap>,
    /// The rules that ran on at least one file.
    pub rules: Vec<&'static RuleInfo>,
    pub files: usize,
    pub kernels: usize,
    pub accesses: usize,
}

/// Analyses the project once per distinct analysis setting, and applies levels.
pub fn run(engine: &Engine, project: &mut Project) -> Outcome {
    let settings = file_settings(project);
    let names: BTreeSet<&str> = settings.values().flat_map(|s| s.levels.keys().copied()).collect();
    let rules: Vec<&'static dyn Rule> =
        engine.rules.iter().copied().filter(|rule| names.contains(rule.info().name)).collect();
    let mut outcome = Outcome {
        rules: rules.iter().map(|rule| rule.info()).collect(),
        files: project.checked.len(),
        gaps: std::mem::take(&mut project.gaps),
        ..Outcome::default()
    };
    for (analysis, checked) in groups(project) {
        let found = analyse(engine, project, analysis, checked, &rules);
        outcome.kernels += found.kernels;
        outcome.accesses += found.accesses;
        outcome.gaps.extend(found.gaps);
        outcome.findings.extend(found.findings.into_iter().filter_map(|finding| leveled(finding, &settings)));
    }
    sort(&mut outcome);
    outcome
}

fn file_settings(project: &Project) -> BTreeMap<FileId, FileSettings> {
    let files = project.checked.iter().zip(&project.configs);
    files.map(|(file, config)| (*file, config.for_file(project.path(*file)))).collect()
}

/// The checked files, by what their configurations tell the analysis; in the order of the first file.
fn groups(project: &Project) -> Vec<(Rc<Settings>, Vec<FileId>)> {
    let mut groups: Vec<(Rc<Settings>, Vec<FileId>)> = Vec::new();
    for (file, config) in project.checked.iter().zip(&project.configs) {
        match groups.iter_mut().find(|(settings, _)| *settings == config.analysis) {
            Some((_, files)) => files.push(*file),
            None => groups.push((config.analysis.clone(), vec![*file])),
        }
    }
    groups
}

fn analyse(
    engine: &Engine,
    project: &mut Project,
    settings: Rc<Settings>,
    checked: Vec<FileId>,
    rules: &[&'static dyn Rule],
) -> Checked {
    let sources = std::mem::take(&mut project.sources);
    let input = Input { sources, checked, settings: Rc::unwrap_or_clone(settings) };
    let mut found = (engine.check)(&input, rules);
    found.findings.retain(|finding| input.checked.contains(&finding.span.file));
    project.sources = input.sources;
    found
}

/// The finding at its level, if its file wants it.
fn leveled(mut finding: Finding, settings: &BTreeMap<FileId, FileSettings>) -> Option<Finding> {
    let settings = settings.get(&finding.span.file)?;
    finding.level = *settings.levels.get(finding.rule.name)?;
    let sure = finding.numbers.confidence.is_none_or(|confidence| confidence >= settings.min_confidence);
    sure.then_some(finding)
}

/// Sorts as reports list: file, start, rule, message; what is said twice is said once.
fn sort(outcome: &mut Outcome) {
    let key = |finding: &Finding| (finding.span, finding.rule.name, finding.message.clone());
    outcome.findings.sort_by_cached_key(key);
    outcome.findings.dedup_by(|a, b| key(a) == key(b));
    outcome.gaps.sort_by(|a, b| (a.span, &a.reason).cmp(&(b.span, &b.reason)));
    outcome.gaps.dedup_by(|a, b| a.span == b.span && a.reason == b.reason);
}

/// How long each step took, for `--timings`.
#[derive(Debug)]
pub struct Timings {
    last: Instant,
    pub steps: Vec<(&'static str, std::time::Duration)>,
}

impl Timings {
    pub fn start() -> Self {
        Timings { last: Instant::now(), steps: Vec::new() }
    }

    pub fn step(&mut self, name: &'static str) {
        let now = Instant::now();
        self.steps.push((name, now - self.last));
        self.last = now;
    }

    pub fn total(&self) -> std::time::Duration {
        self.steps.iter().map(|(_, time)| *time).sum()
    }
}
