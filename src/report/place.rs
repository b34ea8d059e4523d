//! Where something is, in the words of each reader: positions, paths for people, paths from the root, URIs.

use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;

use super::super::source::{FileId, Position, Sources, Span};
use super::Report;

/// A span as positions, both ends counted from 1, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Range {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

impl Range {
    pub fn of(sources: &Sources, span: Span) -> Range {
        let file = sources.get(span.file);
        let Position { line, column } = file.position(span.start);
        let Position { line: end_line, column: end_column } = file.position(span.end.max(span.start));
        Range { line, column, end_line, end_column }
    }
}

/// The path as people see it, with control characters made harmless.
pub(super) fn shown_path(sources: &Sources, file: FileId) -> String {
    harmless(&sources.path(file).to_string_lossy())
}

/// The path from the root with `/` between parts; as given where the file lies outside.
pub(super) fn path_from_root(report: &Report<'_>, file: FileId) -> String {
    match below_root(report, file) {
        Some(path) => parts(&path).collect::<Vec<_>>().join("/"),
        None => report.sources.path(file).to_string_lossy().into_owned(),
    }
}

/// The URI of a file: relative to the root, or (`false`) absolute where the file lies outside.
/// Every byte but letters, digits and `-._~` is percent-encoded, so neither a colon nor a space can mislead.
pub(super) fn uri(report: &Report<'_>, file: FileId) -> (String, bool) {
    match below_root(report, file) {
        Some(path) => (encoded(&path), true),
        None => (format!("file:///{}", encoded(&absolute(report, file))), false),
    }
}

fn absolute(report: &Report<'_>, file: FileId) -> PathBuf {
    normalized(&report.working_dir.join(report.sources.path(file)))
}

fn below_root(report: &Report<'_>, file: FileId) -> Option<PathBuf> {
    let path = absolute(report, file);
    let below = path.strip_prefix(normalized(report.root)).ok()?;
    below.file_name().is_some().then(|| below.to_path_buf())
}

/// Without `.` and `x/..`, by spelling alone.
fn normalized(path: &Path) -> PathBuf {
    let mut kept = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(kept.components().next_back(), Some(Component::Normal(_))) => {
                kept.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) | Component::ParentDir => {
                kept.push(part)
            }
        }
    }
    kept
}

fn parts(path: &Path) -> impl Iterator<Item = String> {
    path.components().filter(|part| !matches!(part, Component::RootDir)).map(|part| {
        // A Windows prefix is `C:`; elsewhere a backslash is part of a name.
        part.as_os_str().to_string_lossy().into_owned()
    })
}

fn encoded(path: &Path) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let parts = path.components().filter(|part| !matches!(part, Component::RootDir));
    let encoded = parts.map(|part| match part {
        Component::Prefix(prefix) => prefix.as_os_str().to_string_lossy().into_owned(),
        Component::RootDir | Component::CurDir | Component::ParentDir | Component::Normal(_) => {
            percent_encode(part.as_os_str().as_encoded_bytes(), KEPT).to_string()
        }
    });
    encoded.collect::<Vec<_>>().join("/")
}

/// One line, no control characters: what source text and file names may hold must not steer a terminal.
pub(super) fn harmless(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.replace("\r\n", "\n").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
