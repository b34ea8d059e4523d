//! Findings as JSON, `schemaVersion` 1: one document, or one finding per line.
//!
//! Fields are only ever added within a version. Lines and columns count from 1, columns in UTF-16 code units, ends are
//! exclusive; `startByte` and `endByte` count bytes of the file's text from 0. Numbers that are not known are left out.

use serde::Serialize;

use super::super::ir::facts::TrailStep;
use super::super::lint::finding::{Finding, Fix, Level};
use super::super::lint::fingerprint::fingerprints;
use super::super::source::{Sources, Span};
use super::Report;
use super::numbers::Numbers;
use super::place::{Range, path_from_root};
use super::text::applicability;

/// The version of both the document and its lines.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema_version: u32,
    tool: Tool,
    summary: Summary,
    findings: Vec<Item<'a>>,
    gaps: Vec<GapItem<'a>>,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Summary {
    files: usize,
    kernels: usize,
    accesses: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    suppressed: usize,
    baselined: usize,
    gaps: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    rule: &'static str,
    level: String,
    path: String,
    #[serde(flatten)]
    range: Range,
    message: &'a str,
    label: &'a str,
    notes: &'a [String],
    help: Option<&'a str>,
    access: &'a str,
    #[serde(flatten)]
    numbers: Numbers<'a>,
    trail: Vec<Step<'a>>,
    fix: Option<FixItem<'a>>,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<Suppressed<'a>>,
}

#[derive(Serialize)]
struct Step<'a> {
    path: String,
    #[serde(flatten)]
    range: Range,
    text: &'a str,
}

#[derive(Serialize)]
struct FixItem<'a> {
    title: &'a str,
    applicability: &'static str,
    edits: Vec<EditItem<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EditItem<'a> {
    path: String,
    #[serde(flatten)]
    range: Range,
    start_byte: u32,
    end_byte: u32,
    replacement: &'a str,
}

#[derive(Serialize)]
struct Suppressed<'a> {
    justification: &'a str,
}

#[derive(Serialize)]
struct GapItem<'a> {
    path: String,
    #[serde(flatten)]
    range: Range,
    reason: &'a str,
}

/// One document, indented, with the allowed findings last (each with `suppressed`).
pub fn render(report: &Report<'_>) -> String {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        tool: Tool { name: "cudalint", version: env!("CARGO_PKG_VERSION") },
        summary: Summary {
            files: report.summary.files,
            kernels: report.summary.kernels,
            accesses: report.summary.accesses,
            errors: report.count(Level::Error),
            warnings: report.count(Level::Warning),
            notes: report.count(Level::Note),
            suppressed: report.suppressed.len(),
            baselined: report.summary.baselined,
            gaps: report.gaps.len(),
        },
        findings: items(report),
        gaps: report.gaps.iter().map(|gap| gap_item(report, gap.span, &gap.reason)).collect(),
    };
    pretty(&document)
}

/// A finding per line, as in the document.
pub fn lines(report: &Report<'_>) -> String {
    items(report).iter().map(|item| compact(item) + "\n").collect()
}

/// Serialising our own trees of strings and finite numbers cannot fail; if it does, the reader sees why.
pub(super) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()))
        + "\n"
}

fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()))
}

/// The findings as a baseline knows them, then the allowed ones, numbered among themselves.
fn items<'a>(report: &Report<'a>) -> Vec<Item<'a>> {
    let allowed: Vec<&Finding> = report.suppressed.iter().map(|(finding, _)| finding).collect();
    let prints = fingerprints(report.sources, report.findings);
    let allowed_prints = fingerprints(report.sources, &allowed);
    let findings =
        report.findings.iter().zip(prints).map(|(finding, print)| item(report, finding, None, print));
    let allowed = report.suppressed.iter().zip(allowed_prints);
    findings
        .chain(allowed.map(|((finding, reason), print)| item(report, finding, Some(reason), print)))
        .collect()
}

fn item<'a>(
    report: &Report<'a>,
    finding: &'a Finding,
    reason: Option<&'a str>,
    fingerprint: String,
) -> Item<'a> {
    Item {
        rule: finding.rule.name,
        level: finding.level.to_string(),
        path: path_from_root(report, finding.span.file),
        range: Range::of(report.sources, finding.span),
        message: &finding.message,
        label: &finding.label,
        notes: &finding.notes,
        help: finding.help.as_deref(),
        access: &finding.access_text,
        numbers: Numbers::of(finding),
        trail: finding.trail.iter().map(|step| step_item(report, step)).collect(),
        fix: finding.fix.as_ref().map(|fix| fix_item(report, report.sources, fix)),
        fingerprint,
        suppressed: reason.map(|justification| Suppressed { justification }),
    }
}

fn step_item<'a>(report: &Report<'_>, step: &'a TrailStep) -> Step<'a> {
    let TrailStep { span, text } = step;
    Step { path: path_from_root(report, span.file), range: Range::of(report.sources, *span), text }
}

fn fix_item<'a>(report: &Report<'_>, sources: &Sources, fix: &'a Fix) -> FixItem<'a> {
    let edits = fix.edits.iter().map(|edit| EditItem {
        path: path_from_root(report, edit.span.file),
        range: Range::of(sources, edit.span),
        start_byte: edit.span.start,
        end_byte: edit.span.end,
        replacement: &edit.replacement,
    });
    FixItem { title: &fix.title, applicability: applicability(fix.applicability), edits: edits.collect() }
}

fn gap_item<'a>(report: &Report<'_>, span: Span, reason: &'a str) -> GapItem<'a> {
    GapItem { path: path_from_root(report, span.file), range: Range::of(report.sources, span), reason }
}
