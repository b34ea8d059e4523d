//! SARIF 2.1.0 as GitHub code scanning, VS Code's viewer and the validators take it.
//!
//! Always exactly one run with a `results` array; only the rules that ran, sorted; relative percent-encoded URIs under
//! `%SRCROOT%`, which is described but not located, so no path of the machine leaks; UTF-16 columns; no
//! `security-severity`, which would turn findings into security alerts. Two results of one rule on one line keep
//! their own numbers and are told apart by a suffix of `primaryLocationLineHash`, on which GitHub keys alerts.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::ir::ast::Gap;
use super::super::lint::finding::{Applicability, Finding, Fix, Level, Measured, RuleInfo};
use super::super::lint::fingerprint::fingerprints;
use super::super::source::{Edit, FileId, Span};
use super::json::pretty;
use super::line_hash::line_hashes;
use super::numbers::Numbers;
use super::place::{Range, harmless, uri};
use super::text::sureness;
use super::{Report, rule_url};

mod log;
use log::*;

/// Texts above this many characters are refused by GitHub.
const TEXT_LIMIT: usize = 1024;
/// Notifications of gaps; the last says how many more there are.
const GAP_LIMIT: usize = 1000;
/// GitHub refuses a run with more results; the worst are kept and a notification says so.
const RESULT_LIMIT: usize = 25_000;

/// The log, indented.
pub fn render(report: &Report<'_>) -> String {
    let mut rules: Vec<&'static RuleInfo> = report.rules.to_vec();
    rules.sort_by_key(|rule| rule.name);
    rules.dedup_by_key(|rule| rule.name);
    let run = Run {
        tool: Tool { driver: driver(&rules) },
        invocations: vec![Invocation { execution_successful: true, notifications: notifications(report) }],
        original_uri_base_ids: BaseIds {
            source_root: BaseId { description: Text::new("The root of the repository or project.") },
        },
        automation_details: Automation {
            id: format!("{}/", report.category.unwrap_or("cudalint").trim_end_matches('/')),
        },
        column_kind: "utf16CodeUnits",
        results: results(report, &rules),
    };
    pretty(&Log { schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] })
}

fn driver(rules: &[&'static RuleInfo]) -> Driver {
    let repository = env!("CARGO_PKG_REPOSITORY");
    Driver {
        name: "cudalint",
        version: env!("CARGO_PKG_VERSION"),
        semantic_version: env!("CARGO_PKG_VERSION"),
        information_uri: (!repository.is_empty()).then_some(repository),
        rules: rules.iter().map(|rule| descriptor(rule)).collect(),
    }
}

fn descriptor(rule: &'static RuleInfo) -> Descriptor {
    let (level, severity) = match rule.default_level {
        Level::Error => ("error", "error"),
        Level::Warning => ("warning", "warning"),
        Level::Note | Level::Off => ("note", "recommendation"),
    };
    let help = if rule.doc.is_empty() { rule.summary } else { rule.doc };
    Descriptor {
        id: rule.name,
        name: pascal_case(rule.name),
        short_description: Text::new(sentence(rule.summary)),
        full_description: Text::new(full_description(rule)),
        help: Help { text: format!("Run `cudalint explain {}`.", rule.name), markdown: help },
        help_uri: rule_url(rule),
        default_configuration: Configuration { level },
        properties: RuleProperties {
            tags: ["cuda".to_owned(), "performance".to_owned(), rule.category.to_string()],
            precision: rule.measured.map(Measured::precision),
            severity,
        },
    }
}

/// The first paragraph of the room's README, on one line.
fn full_description(rule: &RuleInfo) -> String {
    let mut paragraphs = rule.doc.split("\n\n").map(str::trim);
    let first = paragraphs.find(|text| !text.is_empty() && !text.starts_with(['#', '`', '|', '<']));
    let text = first.unwrap_or(rule.summary).split_whitespace().collect::<Vec<_>>().join(" ");
    sentence(&text).chars().take(TEXT_LIMIT).collect()
}

/// `bank-conflict` → `BankConflict`
fn pascal_case(name: &str) -> String {
    name.split('-').map(capitalized).collect()
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Capitalised and ended by a full stop, as SARIF wants its texts.
fn sentence(text: &str) -> String {
    let text = capitalized(harmless(text.trim()).trim_end());
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}

/// What was not understood, so that silence about a place is not taken for approval of it.
fn notifications(report: &Report<'_>) -> Vec<Notification> {
    let shown = report.gaps.iter().take(GAP_LIMIT);
    let mut notifications: Vec<Notification> = shown.map(|gap| notification(report, gap)).collect();
    let mut left_out = |count: usize, limit: usize, what: &str| {
        if count > limit {
            let text = format!("{} more {what}.", count - limit);
            notifications.push(Notification { level: "note", message: Text::new(text), locations: vec![] });
        }
    };
    left_out(report.gaps.len(), GAP_LIMIT, "places were not understood");
    left_out(report.findings.len() + report.suppressed.len(), RESULT_LIMIT, "findings are not listed");
    notifications
}

fn notification(report: &Report<'_>, gap: &Gap) -> Notification {
    let location = Location { physical: physical(report, gap.span, false), ..Location::default() };
    let text = format!("Not understood: {}", sentence(&gap.reason));
    Notification { level: "note", message: Text::new(text), locations: vec![location] }
}

fn results<'a>(report: &Report<'a>, rules: &[&'static RuleInfo]) -> Vec<SarifResult<'a>> {
    let allowed: Vec<&Finding> = report.suppressed.iter().map(|(finding, _)| finding).collect();
    let prints = fingerprints(report.sources, report.findings);
    let allowed_prints = fingerprints(report.sources, &allowed);
    let mut all: Vec<(&'a Finding, Option<&'a str>, String)> =
        report.findings.iter().zip(prints).map(|(finding, print)| (finding, None, print)).collect();
    let allowed = report.suppressed.iter().zip(allowed_prints);
    all.extend(allowed.map(|((finding, reason), print)| (finding, Some(reason.as_str()), print)));
    keep_worst(&mut all, RESULT_LIMIT, |(finding, ..)| finding.level);
    let order = |finding: &Finding| (finding.span, finding.rule.name);
    all.sort_by(|(a, ..), (b, ..)| order(a).cmp(&order(b)).then_with(|| a.message.cmp(&b.message)));
    let mut hashes = Hashes::default();
    all.into_iter()
        .map(|(finding, reason, print)| {
            let hash = hashes.of(report, finding);
            result(report, rules, finding, reason, Fingerprints { line_hash: hash, own: print })
        })
        .collect()
}

/// Drops the mildest, and of those the last, until `limit` are left.
fn keep_worst<T>(all: &mut Vec<T>, limit: usize, level: impl Fn(&T) -> Level) {
    if all.len() > limit {
        all.sort_by_key(|item| std::cmp::Reverse(level(item)));
        all.truncate(limit);
    }
}

/// Line hashes of the files with findings, and how many results of a rule each line has had.
#[derive(Default)]
struct Hashes {
    lines: FxHashMap<FileId, Vec<String>>,
    used: FxHashMap<(FileId, u32, &'static str), u32>,
}

impl Hashes {
    fn of(&mut self, report: &Report<'_>, finding: &Finding) -> String {
        let file = finding.span.file;
        let line = report.sources.line(finding.span);
        let hashes = self.lines.entry(file).or_insert_with(|| line_hashes(&report.sources.get(file).text));
        let hash = hashes.get(line as usize - 1).cloned().unwrap_or_default();
        let used = self.used.entry((file, line, finding.rule.name)).or_insert(0);
        *used += 1;
        if *used == 1 { hash } else { format!("{hash}.{used}") }
    }
}

fn result<'a>(
    report: &Report<'a>,
    rules: &[&'static RuleInfo],
    finding: &'a Finding,
    reason: Option<&'a str>,
    partial_fingerprints: Fingerprints,
) -> SarifResult<'a> {
    let related = related_locations(report, finding);
    SarifResult {
        rule_id: finding.rule.name,
        rule_index: rules.iter().position(|rule| rule.name == finding.rule.name),
        level: match finding.level.min(report.sarif_max_level) {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note | Level::Off => "note",
        },
        message: Message {
            text: message_text(finding, &related),
            markdown: message_markdown(finding, &related),
        },
        locations: [Location {
            physical: physical(report, finding.span, true),
            logical: logical(finding),
            ..Location::default()
        }],
        code_flows: code_flows(report, finding),
        related_locations: related,
        partial_fingerprints,
        fixes: finding.fix.iter().filter_map(|fix| sarif_fix(report, fix)).collect(),
        suppressions: reason.map(|justification| [Suppression { kind: "inSource", justification }]),
        properties: Numbers::of(finding),
    }
}

/// The message as the first sentence, then why, what to do, how sure; links to the trail, which GitHub shows only so.
fn message_text(finding: &Finding, related: &[Location]) -> String {
    let mut sentences = vec![sentence(&finding.message)];
    sentences.extend(finding.notes.iter().map(|note| sentence(note)));
    sentences.extend(finding.help.iter().map(|help| sentence(help)));
    sentences.extend(sureness(finding).map(|sure| sentence(&sure)));
    // A bracket before a parenthesis would be taken for a link.
    let text = sentences.join(" ").replace("](", "\\](");
    if related.is_empty() { text } else { format!("{text} Index: {}.", links(related)) }
}

fn message_markdown(finding: &Finding, related: &[Location]) -> String {
    let mut blocks = vec![sentence(&finding.message)];
    blocks.extend(finding.notes.iter().map(|note| format!("- why: {}", harmless(note))));
    blocks.extend(finding.help.iter().map(|help| format!("- help: {}", harmless(help))));
    blocks.extend(sureness(finding).map(|sure| format!("- {}", harmless(&sure))));
    let text = blocks.join("\n").replacen('\n', "\n\n", 1).replace("](", "\\](");
    if related.is_empty() { text } else { format!("{text}\n- index: {}", links(related)) }
}

/// `[line 9](1), [line 12](2)`
fn links(related: &[Location]) -> String {
    let links = related.iter().map(|location| {
        let line = location.physical.region.as_ref().map_or(0, |region| region.start_line);
        format!("[line {line}]({})", location.id.unwrap_or(0))
    });
    links.collect::<Vec<_>>().join(", ")
}

/// The trail, each place with each text once (`relatedLocations` must be a set).
fn related_locations(report: &Report<'_>, finding: &Finding) -> Vec<Location> {
    let mut steps: Vec<(Span, &str)> = Vec::new();
    for step in &finding.trail {
        if !steps.contains(&(step.span, step.text.as_str())) {
            steps.push((step.span, &step.text));
        }
    }
    let locations = steps.into_iter().zip(1..).map(|((span, text), id)| Location {
        id: Some(id),
        message: Some(Text::new(harmless(text))),
        physical: physical(report, span, false),
        logical: vec![],
    });
    locations.collect()
}

/// The trail as steps that end at the access.
fn code_flows(report: &Report<'_>, finding: &Finding) -> Vec<CodeFlow> {
    if finding.trail.is_empty() {
        return vec![];
    }
    let steps = finding.trail.iter().map(|step| (step.span, step.text.as_str(), "important"));
    let label = if finding.label.is_empty() { &finding.message } else { &finding.label };
    let steps = steps.chain([(finding.span, label.as_str(), "essential")]);
    let locations = steps.map(|(span, text, importance)| FlowLocation {
        location: Location {
            message: Some(Text::new(harmless(text))),
            physical: physical(report, span, false),
            ..Location::default()
        },
        importance,
    });
    vec![CodeFlow { thread_flows: [ThreadFlow { locations: locations.collect() }] }]
}

fn logical(finding: &Finding) -> Vec<Logical> {
    let name = harmless(&finding.kernel);
    if name.is_empty() { vec![] } else { vec![Logical { fully_qualified_name: name, kind: "function" }] }
}

fn physical(report: &Report<'_>, span: Span, with_snippet: bool) -> Physical {
    let snippet = report.sources.text(span);
    let snippet = (with_snippet && !snippet.is_empty()).then(|| Text::new(snippet));
    Physical {
        artifact: artifact(report, span.file),
        region: Some(Region { snippet, ..region(report, span) }),
    }
}

fn artifact(report: &Report<'_>, file: FileId) -> Artifact {
    let (uri, relative) = uri(report, file);
    Artifact { uri, uri_base_id: relative.then_some("%SRCROOT%") }
}

fn region(report: &Report<'_>, span: Span) -> Region {
    let Range { line, column, end_line, end_column } = Range::of(report.sources, span);
    Region { start_line: line, start_column: column, end_line, end_column, snippet: None }
}

/// Editors offer `fixes` as one-click changes: what is only to be shown stays out, and so do edits to a text
/// that is not the file's bytes.
fn sarif_fix(report: &Report<'_>, fix: &Fix) -> Option<SarifFix> {
    let lossy = fix.edits.iter().any(|edit| report.sources.get(edit.span.file).lossy);
    let title = match fix.applicability {
        Applicability::Safe => sentence(&fix.title),
        Applicability::Unsafe => sentence(&format!("{} (unsafe: read it before you keep it)", fix.title)),
        Applicability::DisplayOnly => return None,
    };
    if fix.edits.is_empty() || lossy {
        return None;
    }
    let mut by_file: BTreeMap<FileId, Vec<&Edit>> = BTreeMap::new();
    for edit in &fix.edits {
        by_file.entry(edit.span.file).or_default().push(edit);
    }
    let changes = by_file.into_iter().map(|(file, mut edits)| {
        edits.sort();
        let replacements = edits.into_iter().map(|edit| Replacement {
            deleted_region: region(report, edit.span),
            inserted_content: Text::new(edit.replacement.as_str()),
        });
        ArtifactChange { artifact: artifact(report, file), replacements: replacements.collect() }
    });
    Some(SarifFix { description: Text::new(title), artifact_changes: changes.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mildest_are_dropped() {
        let mut all = vec![(Level::Note, 1), (Level::Error, 2), (Level::Note, 3), (Level::Warning, 4)];
        keep_worst(&mut all, 4, |item| item.0);
        assert_eq!(all.iter().map(|item| item.1).collect::<Vec<_>>(), [1, 2, 3, 4]);
        keep_worst(&mut all, 3, |item| item.0);
        assert_eq!(all.iter().map(|item| item.1).collect::<Vec<_>>(), [2, 4, 1]);
    }
}
