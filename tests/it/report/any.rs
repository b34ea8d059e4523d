//! Any text, any spans: no panic, no terminal control, well-formed XML and JSON.

use cudalint::lint::fingerprint::fingerprints;
use cudalint::report::Format;
use proptest::collection::vec;
use proptest::prelude::*;
use quick_xml::XmlVersion;
use quick_xml::events::Event;
use serde_json::Value;

use super::*;

fn text() -> impl Strategy<Value = String> {
    let pieces =
        ["a", "[i]", " ", "é", "😀", "\n", "\r\n", "\r", "\t", "\u{1b}[31m", "\u{0}", "<&\"'>", "](1)", "%|"];
    vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

/// Spans that may lie outside, start inside a character or end before they start.
fn span() -> impl Strategy<Value = Span> {
    (0u32..2, 0u32..90, 0u32..90).prop_map(|(file, start, end)| Span { file: FileId(file), start, end })
}

fn finding() -> impl Strategy<Value = Finding> {
    let edits = vec((span(), text()), 0..3);
    (span(), text(), vec((span(), text()), 0..4), edits, 0usize..3).prop_map(
        |(span, words, trail, edits, which)| {
            let levels = [Level::Note, Level::Warning, Level::Error];
            let kinds = [Applicability::Safe, Applicability::Unsafe, Applicability::DisplayOnly];
            let edits = edits.into_iter().map(|(span, replacement)| Edit { span, replacement }).collect();
            Finding {
                rule: RULES[which],
                level: levels[which],
                span,
                message: words.clone(),
                label: words.clone(),
                notes: vec![words.clone()],
                help: Some(words.clone()),
                trail: trail.into_iter().map(|(span, text)| TrailStep { span, text }).collect(),
                kernel: words.clone(),
                access_text: words.clone(),
                numbers: Numbers { sectors: Some(f64::NAN), assumptions: vec![words], ..Numbers::default() },
                fix: Some(Fix { title: "do".to_owned(), applicability: kinds[which], edits }),
            }
        },
    )
}

fn well_formed(xml: &str) {
    let mut reader = quick_xml::Reader::from_str(xml);
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => return,
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    attribute.unwrap().normalized_value(XmlVersion::Explicit1_0).unwrap();
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn renders(texts in (text(), text()), mut findings in vec(finding(), 0..4), reason in text()) {
        findings.sort_by_key(|finding| finding.span);
        let mut project = Project::empty();
        project.sources.add(SourceFile::new("a\u{1b}\n|é,:%.cu", texts.0));
        project.sources.add(SourceFile::new("../../../b.cu", texts.1));
        project.gaps = findings.iter().map(|f| Gap { span: f.span, reason: f.message.clone() }).collect();
        project.suppressed = findings.iter().take(1).map(|f| (f.clone(), reason.clone())).collect();
        project.findings = findings;
        for format in Format::ALL {
            for drawing in [Drawing::Unicode, Drawing::Ascii, Drawing::Narrated] {
                let style = Style { drawing, width: 1, ..Style::PLAIN };
                let out = cudalint::report::render(&project.report(), format, &style);
                prop_assert!(!out.contains('\u{1b}'), "{format}: {out:?}");
                match format {
                    Format::Junit | Format::Checkstyle => well_formed(&out),
                    Format::Json | Format::Sarif | Format::Gitlab | Format::Rdjson => {
                        serde_json::from_str::<Value>(&out).unwrap();
                    }
                    Format::Concise | Format::Github => {
                        prop_assert!(out.lines().count() <= project.findings.len() + 1, "{out:?}");
                    }
                    Format::Full | Format::Grouped | Format::Jsonl => {}
                }
            }
        }
        let mut prints = fingerprints(&project.sources, &project.findings);
        prints.sort();
        prints.dedup();
        prop_assert_eq!(prints.len(), project.findings.len());
    }
}
