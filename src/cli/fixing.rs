//! `--fix`: applies fixes in memory, checks again, and keeps only what made things better.

use std::collections::BTreeMap;

use super::super::lint::finding::{Finding, Fix};
use super::super::lint::fix;
use super::super::lint::selection::UNUSED_ALLOW;
use super::super::source::{FileId, SourceFile};
use super::Engine;
use super::analysis::{self, Outcome};
use super::edits::Changes;
use super::known::Known;
use super::project::Project;

/// What became of the fixes.
#[derive(Debug, Default)]
pub struct Fixed {
    /// What is left, known findings included.
    pub outcome: Outcome,
    pub changes: Changes,
    /// Findings that are gone.
    pub applied: usize,
    /// Fixes that were taken back because something got worse.
    pub refused: Vec<Finding>,
}

/// Fixes what is not known. The project then holds the new texts.
pub fn run(
    engine: &Engine,
    project: &mut Project,
    outcome: Outcome,
    known: &Known,
    unsafe_too: bool,
) -> Fixed {
    let mut fixing = Fixing { engine, project, fixed: Fixed { outcome, ..Fixed::default() } };
    // Each round leaves fewer findings or one more refused fix.
    loop {
        let mut left = fixing.fixed.outcome.clone();
        known.remove_from(fixing.project, &mut left);
        let candidates: Vec<Finding> =
            left.findings.into_iter().filter(|f| fixing.may_apply(f, unsafe_too)).collect();
        let refs: Vec<&Finding> = candidates.iter().collect();
        let batch: Vec<&Finding> =
            fix::compatible(&refs).iter().filter_map(|at| refs.get(*at).copied()).collect();
        if batch.is_empty() {
            break;
        }
        // A refusal changes nothing in the texts, so the places of the other fixes still hold.
        if !fixing.attempt(&batch) && batch.len() > 1 {
            let (first, _) = batch.split_at(batch.len().div_ceil(2));
            fixing.narrow(first);
        }
    }
    fixing.fixed
}

struct Fixing<'a> {
    engine: &'a Engine,
    project: &'a mut Project,
    fixed: Fixed,
}

impl Fixing<'_> {
    fn may_apply(&self, finding: &Finding, unsafe_too: bool) -> bool {
        let Some(fix) = finding.fix.as_ref().filter(|fix| fix.applies(unsafe_too)) else { return false };
        let writable = |file: FileId| {
            let ours = self.project.checked.binary_search(&file).is_ok()
                || self.project.path(file).starts_with(&self.project.root);
            ours && !self.project.sources.get(file).lossy
        };
        let refused = self.fixed.refused.iter().filter_map(|finding| finding.fix.as_ref());
        fix.edits.iter().all(|edit| writable(edit.span.file)) && refused.into_iter().all(|other| other != fix)
    }

    /// Halves until something can be applied, or one fix is found to be at fault.
    fn narrow(&mut self, batch: &[&Finding]) {
        if !self.attempt(batch) && batch.len() > 1 {
            let (first, _) = batch.split_at(batch.len().div_ceil(2));
            self.narrow(first);
        }
    }

    /// Applies the fixes together; takes them back unless everything got better. A lone fix is then refused for good.
    fn attempt(&mut self, batch: &[&Finding]) -> bool {
        let fixes = batch.iter().filter_map(|finding| finding.fix.as_ref());
        let Some(replaced) = self.replace(fixes) else { return self.refuse(batch) };
        let outcome = analysis::run(self.engine, self.project);
        if !better(&replaced, &self.fixed.outcome, &outcome) {
            for (file, old) in replaced {
                self.project.sources.replace(file, old);
            }
            return self.refuse(batch);
        }
        for (file, old) in replaced {
            let new = self.project.sources.get(file).text.clone();
            let before = self.fixed.changes.remove(&file).map_or(old.text, |(before, _)| before);
            self.fixed.changes.insert(file, (before, new));
        }
        self.fixed.applied += batch.len();
        self.fixed.outcome = outcome;
        true
    }

    fn refuse(&mut self, batch: &[&Finding]) -> bool {
        if let [finding] = batch {
            self.fixed.refused.push((*finding).clone());
        }
        false
    }

    /// Puts the new texts in place and returns the old ones; nothing happens where the edits do not fit.
    fn replace<'a>(&mut self, fixes: impl Iterator<Item = &'a Fix>) -> Option<Vec<(FileId, SourceFile)>> {
        let mut texts = Vec::new();
        for (file, edits) in fix::by_file(fixes) {
            texts.push((file, fix::apply(&self.project.sources.get(file).text, &edits)?));
        }
        let replace = |(file, text): (FileId, String)| {
            let path = self.project.sources.path(file).to_owned();
            Some((file, self.project.sources.replace(file, SourceFile::new(path, text))?))
        };
        texts.into_iter().map(replace).collect()
    }
}

/// No more gaps, in no kernel more findings of a rule, and fewer findings in all. Comments that lost what they
/// silenced are no loss: they go next.
fn better(replaced: &[(FileId, SourceFile)], before: &Outcome, after: &Outcome) -> bool {
    let gaps = |outcome: &Outcome| {
        let touched = |file| replaced.iter().any(|(other, _)| *other == file);
        outcome.gaps.iter().filter(|gap| touched(gap.span.file)).count()
    };
    let (old, new) = (tally(before), tally(after));
    let grew = new.iter().any(|(group, count)| old.get(group).is_none_or(|old| count > old));
    let total = |tally: &Tally| tally.values().sum::<usize>();
    let fewer = (total(&new), after.findings.len()) < (total(&old), before.findings.len());
    gaps(after) <= gaps(before) && fewer && !grew
}

/// Findings about code, by rule and kernel: the text of an access may be part of what a fix changes.
type Tally<'a> = BTreeMap<(&'a str, &'a str), usize>;

fn tally(outcome: &Outcome) -> Tally<'_> {
    let mut tally = Tally::new();
    for finding in outcome.findings.iter().filter(|finding| finding.rule.name != UNUSED_ALLOW.name) {
        *tally.entry((finding.rule.name, finding.kernel.as_str())).or_default() += 1;
    }
    tally
}
