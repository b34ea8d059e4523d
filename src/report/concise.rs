//! One line per finding: `path:line:col: warning[rule] message`, plain or grouped by file.

use std::fmt::Write;

use super::super::lint::finding::{Finding, Level};
use super::place::{Range, harmless, shown_path};
use super::text::{Style, paint};
use super::{Report, Summary};

/// `a.cu:9:12: warning[uncoalesced-access] …`: what editors, `grep` and people parse.
pub fn render(report: &Report<'_>, style: &Style) -> String {
    let mut out = String::new();
    for finding in report.findings {
        line(&mut out, report, finding, style);
        out.push('\n');
    }
    out
}

pub(super) fn line(out: &mut String, report: &Report<'_>, finding: &Finding, style: &Style) {
    let Range { line, column, .. } = Range::of(report.sources, finding.span);
    let path = shown_path(report.sources, finding.span.file);
    let kind =
        paint(style, level_colour(finding.level), &format!("{}[{}]", finding.level, finding.rule.name));
    // Writing to a String cannot fail.
    let _ = write!(out, "{path}:{line}:{column}: {kind} {}", harmless(&finding.message));
}

/// A heading per file, then aligned lines.
pub fn grouped(report: &Report<'_>, style: &Style) -> String {
    let mut out = String::new();
    for group in report.findings.chunk_by(|a, b| a.span.file == b.span.file) {
        let Some(first) = group.first() else { continue };
        let rows: Vec<[String; 3]> = group.iter().map(|finding| row(report, finding)).collect();
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
        let (place_width, kind_width) = (width(0), width(1));
        let path = shown_path(report.sources, first.span.file);
        let _ = writeln!(out, "{}:", paint(style, BOLD, &path));
        for ([place, kind, message], finding) in rows.iter().zip(group) {
            let kind = paint(style, level_colour(finding.level), &format!("{kind:<kind_width$}"));
            let _ = writeln!(out, "  {place:>place_width$}  {kind}  {message}");
        }
        out.push('\n');
    }
    out
}

fn row(report: &Report<'_>, finding: &Finding) -> [String; 3] {
    let Range { line, column, .. } = Range::of(report.sources, finding.span);
    let kind = format!("{}[{}]", finding.level, finding.rule.name);
    [format!("{line}:{column}"), kind, harmless(&finding.message)]
}

/// `2 warnings, 1 note (3 allowed, 4 in the baseline); 14 kernels in 3 files, 2 places not understood; 12 ms`
pub fn summary(report: &Report<'_>) -> String {
    let Summary { files, kernels, baselined, elapsed, .. } = report.summary;
    let mut found: Vec<String> = [Level::Error, Level::Warning, Level::Note]
        .into_iter()
        .map(|level| (level, report.count(level)))
        .filter(|&(_, count)| count > 0)
        .map(|(level, count)| counted(count, &level.to_string()))
        .collect();
    if found.is_empty() {
        found.push("no findings".to_owned());
    }
    let mut silent = Vec::new();
    if !report.suppressed.is_empty() {
        silent.push(format!("{} allowed", report.suppressed.len()));
    }
    if baselined > 0 {
        silent.push(format!("{baselined} in the baseline"));
    }
    let mut out = found.join(", ");
    if !silent.is_empty() {
        let _ = write!(out, " ({})", silent.join(", "));
    }
    let _ = write!(out, "; {} in {}", counted(kernels, "kernel"), counted(files, "file"));
    if !report.gaps.is_empty() {
        let _ = write!(out, ", {} not understood", counted(report.gaps.len(), "place"));
    }
    if let Some(elapsed) = elapsed {
        let _ = write!(out, "; {} ms", elapsed.as_millis());
    }
    out
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The parameters of ANSI's "select graphic rendition".
pub(super) const BOLD: &str = "1";

pub(super) fn level_colour(level: Level) -> &'static str {
    match level {
        Level::Error => "1;31",
        Level::Warning => "1;33",
        Level::Note | Level::Off => "1;36",
    }
}
