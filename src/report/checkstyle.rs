//! Checkstyle XML: files with errors, read by Jenkins and many review bots.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, Event};

use super::super::lint::finding::{Finding, Level};
use super::Report;
use super::place::{Range, path_from_root};

pub fn render(report: &Report<'_>) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory cannot fail.
    let _ = document(report, &mut writer);
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    text
}

fn document(report: &Report<'_>, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.create_element("checkstyle").with_attribute(("version", "4.3")).write_inner_content(|writer| {
        for group in report.findings.chunk_by(|a, b| a.span.file == b.span.file) {
            let Some(first) = group.first() else { continue };
            let path = xml_text(&path_from_root(report, first.span.file));
            let file = writer.create_element("file").with_attribute(("name", path.as_str()));
            file.write_inner_content(|writer| {
                group.iter().try_for_each(|finding| error(report, finding, writer))
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

fn error(report: &Report<'_>, finding: &Finding, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    let Range { line, column, .. } = Range::of(report.sources, finding.span);
    let severity = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note | Level::Off => "info",
    };
    let (line, column) = (line.to_string(), column.to_string());
    let (message, source) = (xml_text(&finding.message), format!("cudalint.{}", finding.rule.name));
    let attributes = [
        ("line", line.as_str()),
        ("column", &column),
        ("severity", severity),
        ("message", &message),
        ("source", &source),
    ];
    writer.create_element("error").with_attributes(attributes).write_empty()?;
    Ok(())
}

/// Without the characters that XML 1.0 cannot hold, escaped or not.
fn xml_text(text: &str) -> String {
    let held = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().filter(|&c| held(c)).collect()
}
