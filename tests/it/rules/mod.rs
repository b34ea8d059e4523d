//! Rules over small sources: what they propose and edit. What they find is in the rooms and in fixtures/kernels.

use cudalint::lint::check::{Input, Settings, check};
use cudalint::lint::finding::{Applicability, Finding};
use cudalint::lint::fix;
use cudalint::rules;
use cudalint::source::{SourceFile, Sources};

mod bank_conflict;
mod missing_restrict;

/// The findings of one rule in one file.
fn findings(rule: &str, text: &str, pedantic: bool) -> Vec<Finding> {
    let mut sources = Sources::default();
    let file = sources.add(SourceFile::new("a.cu", text.to_owned()));
    let settings = Settings { pedantic, ..Settings::default() };
    let input = Input { sources, checked: vec![file], settings, ..Input::default() };
    let found = check(&input, rules::ALL).findings;
    found.into_iter().filter(|finding| finding.rule.name == rule).collect()
}

/// The text after the fix of the only finding, and how sure the fix is.
fn fixed(rule: &str, text: &str) -> Option<(String, Applicability)> {
    let found = findings(rule, text, false);
    assert_eq!(found.len(), 1, "{found:#?}");
    let fix = found.into_iter().next()?.fix?;
    let mut edits = fix.edits.clone();
    edits.sort();
    Some((fix::apply(text, &edits)?, fix.applicability))
}
