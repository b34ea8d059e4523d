//! GitHub workflow commands (annotations on a pull request's lines) and the job summary.
//!
//! A step shows the first 10 annotations of each level and drops the rest without a word, so the worst come first and
//! what did not fit is said in a last notice.

use std::fmt::Write;

use super::super::lint::finding::{Finding, Level};
use super::Report;
use super::place::{Range, harmless, path_from_root};

/// What GitHub shows per level and step.
const SHOWN: usize = 10;
/// Rows of the job summary; GitHub refuses more than 1 MiB, a row is below 1 KiB.
const ROWS: usize = 500;

/// `::warning file=…,line=…,col=…,title=…::message`, by severity, then in report order.
pub fn render(report: &Report<'_>) -> String {
    let mut out = String::new();
    let mut left_out = 0;
    for level in [Level::Error, Level::Warning, Level::Note] {
        let count = report.count(level);
        // The closing notice needs a notice's place.
        let room = if level == Level::Note && left_out + count > SHOWN { SHOWN - 1 } else { SHOWN };
        for finding in of_level(report, level).take(room) {
            command(&mut out, report, finding);
        }
        left_out += count.saturating_sub(room);
    }
    if left_out > 0 {
        let total = report.findings.len();
        let text = format!(
            "{left_out} of {total} findings have no annotation here: see the job summary, the log or SARIF"
        );
        let _ = writeln!(out, "::notice title=cudalint::{}", escaped_data(&text));
    }
    out
}

fn of_level<'a>(report: &Report<'a>, level: Level) -> impl Iterator<Item = &'a Finding> {
    report.findings.iter().filter(move |finding| finding.level == level)
}

fn command(out: &mut String, report: &Report<'_>, finding: &Finding) {
    let kind = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note | Level::Off => "notice",
    };
    let Range { line, column, end_line, end_column } = Range::of(report.sources, finding.span);
    let file = escaped_property(&harmless(&path_from_root(report, finding.span.file)));
    let _ = write!(out, "::{kind} file={file},line={line},endLine={end_line}");
    // Columns are refused where the lines differ; the end is inclusive there.
    if line == end_line {
        let _ = write!(out, ",col={column},endColumn={}", end_column.saturating_sub(1).max(column));
    }
    let title = escaped_property(&format!("cudalint {}", finding.rule.name));
    let help = finding.help.as_ref().map(|help| format!("\nhelp: {}", harmless(help))).unwrap_or_default();
    let _ =
        writeln!(out, ",title={title}::{}", escaped_data(&format!("{}{help}", harmless(&finding.message))));
}

/// As `@actions/core` escapes a command's message.
fn escaped_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// As `@actions/core` escapes a command's property.
fn escaped_property(text: &str) -> String {
    escaped_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Markdown for `$GITHUB_STEP_SUMMARY`: counts and a table, the worst first.
pub fn step_summary(report: &Report<'_>) -> String {
    let mut out = format!("### cudalint\n\n{}\n", super::concise::summary(report));
    if report.findings.is_empty() {
        return out;
    }
    out.push_str("\n| level | rule | place | finding |\n|---|---|---|---|\n");
    let findings =
        [Level::Error, Level::Warning, Level::Note].into_iter().flat_map(|level| of_level(report, level));
    for finding in findings.take(ROWS) {
        let line = report.sources.line(finding.span);
        let place = cell(&format!("{}:{line}", path_from_root(report, finding.span.file)));
        let message = cell(&finding.message);
        let _ = writeln!(out, "| {} | `{}` | {place} | {message} |", finding.level, finding.rule.name);
    }
    if let Some(more) = report.findings.len().checked_sub(ROWS).filter(|&more| more > 0) {
        let _ = writeln!(out, "\n{more} more are in the log.");
    }
    out
}

/// Keeps a table's cell one cell, outside code spans and inside; bounded so that the table fits.
fn cell(text: &str) -> String {
    let short: String = harmless(text).chars().take(400).collect();
    short.replace('|', "\\|").replace('<', "&lt;")
}
