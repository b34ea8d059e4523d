//! reviewdog's diagnostic format. Columns count bytes from 1 here, as its specification asks.

use serde::Serialize;

use super::super::lint::finding::{Applicability, Finding, Level};
use super::super::source::Span;
use super::json::pretty;
use super::place::path_from_root;
use super::{Report, rule_url};

#[derive(Serialize)]
struct Document<'a> {
    source: Source,
    severity: &'static str,
    diagnostics: Vec<Diagnostic<'a>>,
}

#[derive(Serialize)]
struct Source {
    name: &'static str,
}

#[derive(Serialize)]
struct Diagnostic<'a> {
    message: &'a str,
    location: Location,
    severity: &'static str,
    code: Code,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suggestions: Vec<Suggestion<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Related<'a>>,
}

#[derive(Serialize)]
struct Code {
    value: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Serialize)]
struct Location {
    path: String,
    range: Range,
}

#[derive(Serialize)]
struct Range {
    start: Position,
    end: Position,
}

#[derive(Serialize)]
struct Position {
    line: u32,
    column: u32,
}

#[derive(Serialize)]
struct Suggestion<'a> {
    range: Range,
    text: &'a str,
}

#[derive(Serialize)]
struct Related<'a> {
    message: &'a str,
    location: Location,
}

pub fn render(report: &Report<'_>) -> String {
    let diagnostics = report.findings.iter().map(|finding| diagnostic(report, finding)).collect();
    pretty(&Document { source: Source { name: "cudalint" }, severity: "WARNING", diagnostics })
}

fn diagnostic<'a>(report: &Report<'_>, finding: &'a Finding) -> Diagnostic<'a> {
    Diagnostic {
        message: &finding.message,
        location: location(report, finding.span),
        severity: match finding.level {
            Level::Error => "ERROR",
            Level::Warning => "WARNING",
            Level::Note | Level::Off => "INFO",
        },
        code: Code { value: finding.rule.name, url: rule_url(finding.rule) },
        suggestions: suggestions(report, finding),
        related_locations: finding
            .trail
            .iter()
            .map(|step| Related { message: &step.text, location: location(report, step.span) })
            .collect(),
    }
}

/// Each suggestion is offered alone, so a fix of several edits is none.
fn suggestions<'a>(report: &Report<'_>, finding: &'a Finding) -> Vec<Suggestion<'a>> {
    let fix = finding.fix.iter().filter(|fix| fix.applicability != Applicability::DisplayOnly);
    fix.filter_map(|fix| match fix.edits.as_slice() {
        [edit] if edit.span.file == finding.span.file => {
            Some(Suggestion { range: range(report, edit.span), text: &edit.replacement })
        }
        _ => None,
    })
    .collect()
}

fn location(report: &Report<'_>, span: Span) -> Location {
    Location { path: path_from_root(report, span.file), range: range(report, span) }
}

fn range(report: &Report<'_>, span: Span) -> Range {
    let file = report.sources.get(span.file);
    let position = |offset: u32| {
        let line = file.line(offset);
        let start = file.line_range(line).start as u32;
        Position { line, column: offset.min(file.text.len() as u32).saturating_sub(start) + 1 }
    };
    Range { start: position(span.start), end: position(span.end.max(span.start)) }
}
