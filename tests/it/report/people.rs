//! What people read, as snapshots.

use cudalint::report::text::{Drawing, Style};
use cudalint::report::{Format, concise, render};

use super::{Project, UNICODE, project};

#[test]
fn full() {
    insta::assert_snapshot!(render(&project().report(), Format::Full, &UNICODE));
}

#[test]
fn full_ascii() {
    insta::assert_snapshot!(render(&project().report(), Format::Full, &Style::PLAIN));
}

#[test]
fn narrated() {
    let style = Style { drawing: Drawing::Narrated, ..Style::PLAIN };
    insta::assert_snapshot!(render(&project().report(), Format::Full, &style));
}

#[test]
fn one_line_each() {
    insta::assert_snapshot!(render(&project().report(), Format::Concise, &Style::PLAIN));
}

#[test]
fn by_file() {
    insta::assert_snapshot!(render(&project().report(), Format::Grouped, &Style::PLAIN));
}

#[test]
fn as_json() {
    let json = render(&project().report(), Format::Json, &Style::PLAIN);
    insta::assert_snapshot!(json.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn colour_is_only_added() {
    let project = project();
    for format in Format::ALL {
        let plain = render(&project.report(), format, &UNICODE);
        let coloured = render(&project.report(), format, &Style { colour: true, ..UNICODE });
        assert_eq!(without_sgr(&coloured), plain, "{format}");
    }
}

/// Drops `ESC [ … m`.
fn without_sgr(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |kept, part| kept + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn source_text_cannot_steer_the_terminal() {
    for format in Format::ALL {
        assert!(!render(&project().report(), format, &UNICODE).contains('\u{1b}'), "{format}");
    }
}

#[test]
fn nothing_found_is_silent_for_people() {
    let empty = Project::empty();
    for format in [Format::Full, Format::Concise, Format::Grouped, Format::Jsonl] {
        assert_eq!(render(&empty.report(), format, &UNICODE), "", "{format}");
    }
}

#[test]
fn summary_line() {
    let project = project();
    let mut report = project.report();
    let counts = "1 error, 2 warnings, 1 note (1 allowed); 2 kernels in 2 files, 1 place not understood";
    assert_eq!(concise::summary(&report), counts);
    report.summary.elapsed = Some(std::time::Duration::from_millis(12));
    assert_eq!(concise::summary(&report), format!("{counts}; 12 ms"));
    assert_eq!(concise::summary(&Project::empty().report()), "no findings; 2 kernels in 0 files");
}

#[test]
fn json_lines_are_the_documents_findings() {
    let project = project();
    let document: serde_json::Value =
        serde_json::from_str(&render(&project.report(), Format::Json, &UNICODE)).unwrap();
    let lines = render(&project.report(), Format::Jsonl, &UNICODE);
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(document["findings"], serde_json::Value::Array(lines));
    assert_eq!(document["schemaVersion"], 1);
}
