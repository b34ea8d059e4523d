//! GitLab's code quality report: an array of issues. GitLab shows one issue per fingerprint, so all are distinct.

use serde::Serialize;

use super::super::lint::finding::Level;
use super::super::lint::fingerprint::fingerprints;
use super::Report;
use super::json::pretty;
use super::place::{Range, path_from_root};

#[derive(Serialize)]
struct Issue<'a> {
    description: &'a str,
    check_name: &'static str,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
    end: u32,
}

pub fn render(report: &Report<'_>) -> String {
    let prints = fingerprints(report.sources, report.findings);
    let issues = report.findings.iter().zip(prints).map(|(finding, fingerprint)| {
        let Range { line, end_line, .. } = Range::of(report.sources, finding.span);
        Issue {
            description: &finding.message,
            check_name: finding.rule.name,
            fingerprint,
            severity: match finding.level {
                Level::Error => "major",
                Level::Warning => "minor",
                Level::Note | Level::Off => "info",
            },
            location: Location {
                path: path_from_root(report, finding.span.file),
                lines: Lines { begin: line, end: end_line },
            },
        }
    });
    pretty(&issues.collect::<Vec<_>>())
}
