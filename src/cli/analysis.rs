//! From a project to findings that count: the analysis, levels and comments.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Instant;

use super::super::ir::ast::Gap;
use super::super::lint::check::{Checked, Input, Settings};
use super::super::lint::finding::{Finding, RuleInfo};
use super::super::lint::rule::Rule;
use super::super::lint::suppression;
use super::super::source::FileId;
use super::Engine;
use super::project::Project;
use super::settings::FileSettings;

/// What a check found, ready to be reported.
#[derive(Clone, Debug, Default)]
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
    /// Findings left out because a baseline has them or because they are old.
    pub known: usize,
}

/// Analyses the project once per distinct analysis setting, and applies levels.
pub fn run(engine: &Engine, project: &mut Project) -> Outcome {
    let settings = file_settings(project);
    let names: BTreeSet<&str> = settings.values().flat_map(|s| s.levels.keys().copied()).collect();
    let rules: Vec<&'static dyn Rule> =
        engine.rules.iter().copied().filter(|rule| names.contains(rule.info().name)).collect();
    let mut outcome = Outcome {
        rules: engine.infos().into_iter().filter(|rule| names.contains(rule.name)).collect(),
        files: project.checked.len(),
        gaps: project.gaps.clone(),
        ..Outcome::default()
    };
    for (analysis, checked) in groups(project) {
        let found = analyse(engine, project, analysis, checked, &rules);
        outcome.kernels += found.kernels;
        outcome.accesses += found.accesses;
        outcome.gaps.extend(found.gaps);
        outcome.findings.extend(found.findings.into_iter().filter_map(|finding| leveled(finding, &settings)));
    }
    silence(engine, project, &settings, &mut outcome);
    outcome.findings.retain(|finding| sure_enough(finding, &settings));
    outcome.suppressed.retain(|(finding, _)| sure_enough(finding, &settings));
    sort(&mut outcome);
    outcome
}

/// Applies the comments of each file to its findings.
fn silence(
    engine: &Engine,
    project: &Project,
    settings: &BTreeMap<FileId, FileSettings>,
    outcome: &mut Outcome,
) {
    let rules = engine.infos();
    let mut by_file: BTreeMap<FileId, Vec<Finding>> =
        settings.keys().map(|file| (*file, Vec::new())).collect();
    for finding in std::mem::take(&mut outcome.findings) {
        by_file.entry(finding.span.file).or_default().push(finding);
    }
    for (file, findings) in by_file {
        let Some(levels) = settings.get(&file).map(|settings| &settings.levels) else { continue };
        let ran = |rule: &str| levels.contains_key(rule);
        let applied = suppression::apply(&project.sources, file, findings, &outcome.gaps, &rules, &ran);
        outcome.findings.extend(applied.kept);
        outcome.suppressed.extend(applied.suppressed);
        outcome.findings.extend(applied.unused.into_iter().filter_map(|finding| leveled(finding, settings)));
    }
}

fn file_settings(project: &Project) -> BTreeMap<FileId, FileSettings> {
    let files = project.checked.iter().zip(&project.configs);
    files.map(|(file, config)| (*file, config.for_file(project.path(*file)))).collect()
}

/// The checked files, by what their configurations tell the analysis; in the order of the first file.
pub fn groups(project: &Project) -> Vec<(Rc<Settings>, Vec<FileId>)> {
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
    let input = input(project, settings, checked);
    let mut found = (engine.check)(&input, rules);
    let checked = |file: FileId| input.checked.binary_search(&file).is_ok();
    found.findings.retain(|finding| checked(finding.span.file));
    found.gaps.retain(|gap| checked(gap.span.file));
    project.sources = input.sources;
    found
}

/// The project's sources move into the input; the caller puts them back.
pub fn input(project: &mut Project, settings: Rc<Settings>, checked: Vec<FileId>) -> Input {
    let sources = std::mem::take(&mut project.sources);
    let build_defines = project.build_defines.clone();
    Input { sources, checked, settings: Rc::unwrap_or_clone(settings), build_defines }
}

/// The finding at its level, if its file wants the rule. One that its rule itself puts below the rule's level stays there.
fn leveled(mut finding: Finding, settings: &BTreeMap<FileId, FileSettings>) -> Option<Finding> {
    let wanted = *settings.get(&finding.span.file)?.levels.get(finding.rule.name)?;
    finding.level = if finding.is_lowered() { finding.level.min(wanted) } else { wanted };
    Some(finding)
}

fn sure_enough(finding: &Finding, settings: &BTreeMap<FileId, FileSettings>) -> bool {
    let least = settings.get(&finding.span.file).map(|settings| settings.min_confidence);
    finding.numbers.confidence.is_none_or(|confidence| least.is_none_or(|least| confidence >= least))
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
