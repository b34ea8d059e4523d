//! Edits as unified diffs: a small preview under a finding, a whole patch for `--diff`.

use similar::{ChangeTag, TextDiff};

use super::super::lint::finding::Fix;
use super::super::source::{Edit, FileId, SourceFile, Sources};
use super::place::{harmless, shown_path};

/// Unchanged lines shown on each side of a change in a preview.
const CONTEXT: u32 = 1;

/// A patch that `git apply` and `patch -p1` take; empty where nothing changes. `path` is relative, with `/`.
pub fn patch(path: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

/// One line of a preview with its kind, without line end: `-`, `+`, ` `, or `@` for a heading.
pub(super) type PreviewLine = (char, String);

/// The fix's edits as a diff of the few lines they touch; empty where it has none or they do not fit the source.
pub(super) fn preview(sources: &Sources, fix: &Fix) -> Vec<PreviewLine> {
    let mut edits: Vec<&Edit> = fix.edits.iter().collect();
    edits.sort();
    let mut lines = Vec::new();
    for group in edits.chunk_by(|a, b| a.span.file == b.span.file && near(sources, a, b)) {
        if let Some(first) = group.first() {
            preview_group(sources, first.span.file, group, &mut lines);
        }
    }
    lines
}

fn near(sources: &Sources, a: &Edit, b: &Edit) -> bool {
    let file = sources.get(a.span.file);
    file.line(b.span.start) <= file.line(a.span.end).saturating_add(2 * CONTEXT + 1)
}

fn preview_group(sources: &Sources, id: FileId, edits: &[&Edit], lines: &mut Vec<PreviewLine>) {
    let file = sources.get(id);
    let starts = edits.iter().map(|edit| edit.span.start).min().unwrap_or(0);
    let ends = edits.iter().map(|edit| edit.span.end).max().unwrap_or(0);
    let first = file.line(starts).saturating_sub(CONTEXT).max(1);
    let window = file.line_range(first).start..file.line_range(file.line(ends).saturating_add(CONTEXT)).end;
    let Some((old, new)) = applied(file, window, edits) else { return };
    lines.push(('@', format!("{}:{}", shown_path(sources, id), file.line(starts))));
    for change in TextDiff::from_lines(old.as_str(), new.as_str()).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        lines.push((sign, printable(change.value())));
    }
}

/// The window's text before and after; `None` where an edit does not fit (overlap, outside, inside a character).
fn applied(file: &SourceFile, window: std::ops::Range<usize>, edits: &[&Edit]) -> Option<(String, String)> {
    let old = file.text.get(window.clone())?;
    let (mut new, mut at) = (String::with_capacity(old.len()), window.start);
    for edit in edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        new.push_str(file.text.get(at..start)?);
        new.push_str(&edit.replacement);
        at = end.max(start);
    }
    new.push_str(file.text.get(at..window.end)?);
    Some((format!("{old}\n"), format!("{new}\n")))
}

/// Tabs become spaces, so that what the sign pushes along stays aligned.
fn printable(line: &str) -> String {
    harmless(&line.trim_end_matches(['\n', '\r']).replace('\t', "    "))
}
