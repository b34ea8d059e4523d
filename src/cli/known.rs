//! Findings that are known: accepted in a baseline, or there before the change that is looked at.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::lint::baseline::{self, Entry};
use super::super::lint::finding::Finding;
use super::analysis::Outcome;
use super::failure::Failure;
use super::project::Project;
use super::shell::Shell;

/// What is not reported again.
#[derive(Debug, Default)]
pub struct Known {
    pub baseline: Option<Baseline>,
    /// The findings of the other version, with paths relative to the project's root.
    pub before: Option<Vec<Entry>>,
}

/// A file of accepted findings.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Absolute.
    pub file: PathBuf,
    pub entries: Vec<Entry>,
}

impl Known {
    /// Takes the known findings out of an outcome.
    pub fn remove_from(&self, project: &Project, outcome: &mut Outcome) {
        if let Some(before) = &self.before {
            let new = baseline::entries(&project.sources, &outcome.findings, |f| {
                project.name(&project.root, f.span.file)
            });
            remove(outcome, &baseline::compare(before, &new, |_| true).known);
        }
        if let Some(accepted) = &self.baseline {
            let matched = accepted.compare(project, &outcome.findings);
            remove(outcome, &matched.known);
        }
    }
}

fn remove(outcome: &mut Outcome, known: &[bool]) {
    let findings = std::mem::take(&mut outcome.findings);
    let kept = findings.into_iter().zip(known).filter(|(_, known)| !**known);
    outcome.findings = kept.map(|(finding, _)| finding).collect();
    outcome.known += known.iter().filter(|known| **known).count();
}

impl Baseline {
    pub fn read(shell: &Shell<'_>, file: &Path) -> Result<Baseline, Failure> {
        let shown = shell.display(file);
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", shown.display())))?;
        let entries = baseline::parse(&text)
            .map_err(|error| Failure::Usage(format!("{}: {error}", shown.display())))?;
        Ok(Baseline { file: file.to_owned(), entries })
    }

    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// The findings as this file stores them.
    pub fn entries_of(&self, project: &Project, findings: &[Finding]) -> Vec<Entry> {
        baseline::entries(&project.sources, findings, |finding| {
            project.name(self.directory(), finding.span.file)
        })
    }

    pub fn compare(&self, project: &Project, findings: &[Finding]) -> baseline::Matched {
        let new = self.entries_of(project, findings);
        let judged = self.judged(project);
        baseline::compare(&self.entries, &new, judged)
    }

    /// Whether a run can tell that an entry is stale: its file was checked, or is gone.
    pub fn judged(&self, project: &Project) -> impl Fn(&Entry) -> bool + use<> {
        let directory = self.directory().to_owned();
        let names: BTreeSet<String> =
            project.checked.iter().map(|file| project.name(&directory, *file)).collect();
        move |entry| names.contains(&entry.path) || !directory.join(&entry.path).exists()
    }

    /// Accepted findings that are no longer there, as far as this run can tell and for rules that ran.
    pub fn stale(&self, project: &Project, outcome: &Outcome, findings: &[Finding]) -> Vec<&Entry> {
        let matched = self.compare(project, findings);
        let judged = self.judged(project);
        let ran = |entry: &Entry| outcome.rules.iter().any(|rule| rule.name == entry.rule);
        let stale = self
            .entries
            .iter()
            .zip(&matched.met)
            .filter(|(entry, met)| !**met && judged(entry) && ran(entry));
        stale.map(|(entry, _)| entry).collect()
    }
}
