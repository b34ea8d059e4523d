//! Which findings are old: accepted in a file, or present in another version of the tree.
//!
//! Findings are compared as multisets of what they say about the code, first within each path and then, for code that
//! moved, across paths. Counting, not line numbers: one more equal finding in a file is one new finding.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::source::Sources;
use super::finding::Finding;
use super::fingerprint;

/// The version of the file's form.
const SCHEMA_VERSION: u32 = 1;

/// Where a project keeps its accepted findings.
pub const FILE_NAME: &str = "cudalint-baseline.json";

/// A finding as it is known again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Relative to the file's directory, `/` as separator.
    pub path: String,
    pub rule: String,
    /// For people; empty on the host side.
    pub kernel: String,
    /// For people: the access.
    pub access: String,
    /// Rule, kernel, operation and access; see [`fingerprint`].
    pub fingerprint: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    schema_version: u32,
    findings: Vec<Entry>,
}

/// A baseline that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    #[error("not a baseline: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the baseline has version {0}, which this cudalint does not know")]
    Version(u32),
}

/// The entries of a baseline file.
pub fn parse(text: &str) -> Result<Vec<Entry>, BaselineError> {
    let file: File = serde_json::from_str(text)?;
    match file.schema_version {
        SCHEMA_VERSION => Ok(file.findings),
        other => Err(BaselineError::Version(other)),
    }
}

/// The text of a baseline file: sorted, so that a diff shows what changed.
pub fn render(mut findings: Vec<Entry>) -> String {
    findings.sort();
    let file = File { schema_version: SCHEMA_VERSION, findings };
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

/// The findings as entries, in their order. `path` gives the path that the file stores.
pub fn entries(sources: &Sources, findings: &[Finding], path: impl Fn(&Finding) -> String) -> Vec<Entry> {
    let fingerprints = fingerprint::fingerprints(sources, findings);
    let entry = |(finding, fingerprint): (&Finding, String)| Entry {
        path: path(finding),
        rule: finding.rule.name.to_owned(),
        kernel: finding.kernel.clone(),
        access: finding.access_text.clone(),
        fingerprint: fingerprint::key(&fingerprint).to_owned(),
    };
    findings.iter().zip(fingerprints).map(entry).collect()
}

/// Who is known, on both sides.
#[derive(Debug, PartialEq, Eq)]
pub struct Matched {
    /// For each of `new`: is it an old one?
    pub known: Vec<bool>,
    /// For each of `old`: was it met?
    pub met: Vec<bool>,
}

/// Matches entries of the same fingerprint, each old one once: those of the same path first, then the old ones that
/// `may_move` says may have gone elsewhere.
pub fn compare(old: &[Entry], new: &[Entry], may_move: impl Fn(&Entry) -> bool) -> Matched {
    let mut matched = Matched { known: vec![false; new.len()], met: vec![false; old.len()] };
    pair(old, new, &mut matched, |entry| Some((entry.fingerprint.as_str(), entry.path.as_str())), |_| true);
    pair(old, new, &mut matched, |entry| Some((entry.fingerprint.as_str(), "")), may_move);
    matched
}

fn pair<'a>(
    old: &'a [Entry],
    new: &'a [Entry],
    matched: &mut Matched,
    key: impl Fn(&'a Entry) -> Option<(&'a str, &'a str)>,
    wanted: impl Fn(&Entry) -> bool,
) {
    let mut free: BTreeMap<Option<(&str, &str)>, Vec<usize>> = BTreeMap::new();
    let unmet = old.iter().enumerate().zip(&matched.met).filter(|((_, entry), met)| !**met && wanted(entry));
    for ((at, entry), _) in unmet {
        free.entry(key(entry)).or_default().push(at);
    }
    for (entry, known) in new.iter().zip(&mut matched.known).filter(|(_, known)| !**known) {
        if let Some(at) = free.get_mut(&key(entry)).and_then(Vec::pop) {
            *known = true;
            if let Some(met) = matched.met.get_mut(at) {
                *met = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, fingerprint: &str) -> Entry {
        let (path, fingerprint) = (path.to_owned(), fingerprint.to_owned());
        Entry { path, rule: "r".into(), kernel: "k".into(), access: "a".into(), fingerprint }
    }

    #[test]
    fn one_more_equal_finding_is_one_new_finding() {
        let old = [entry("a.cu", "1")];
        let new = [entry("a.cu", "1"), entry("a.cu", "1")];
        assert_eq!(compare(&old, &new, |_| true).known, [true, false]);
    }

    #[test]
    fn the_same_path_goes_first_and_moves_are_known() {
        let old = [entry("a.cu", "1"), entry("b.cu", "1")];
        let new = [entry("b.cu", "1"), entry("c.cu", "1"), entry("c.cu", "2")];
        let matched = compare(&old, &new, |_| true);
        assert_eq!(matched, Matched { known: vec![true, true, false], met: vec![true, true] });
        let matched = compare(&old, &new, |entry| entry.path != "a.cu");
        assert_eq!(matched, Matched { known: vec![true, false, false], met: vec![false, true] });
    }

    #[test]
    fn the_file_reads_what_it_writes() {
        let entries = vec![entry("b.cu", "2"), entry("a.cu", "1")];
        let text = render(entries.clone());
        assert_eq!(parse(&text).unwrap(), [entries[1].clone(), entries[0].clone()]);
        assert!(parse("{\"schemaVersion\":9,\"findings\":[]}").is_err());
    }
}
