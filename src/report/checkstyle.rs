//! Checkstyle XML: files with errors, read by Jenkins and many review bots.

use quick_xml::Writer;

use super::super::lint::finding::{Finding, Level};
use super::place::{Range, path_from_root};
use super::{Report, xml};

pub fn render(report: &Report<'_>) -> String {
    xml::document(|writer| {
        writer.create_element("checkstyle").with_attribute(("version", "4.3")).write_inner_content(
            |writer| {
                report
                    .findings
                    .chunk_by(|a, b| a.span.file == b.span.file)
                    .try_for_each(|group| file(report, group, writer))
            },
        )?;
        Ok(())
    })
}

fn file(report: &Report<'_>, group: &[Finding], writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    let path = xml::text(&path_from_root(report, first.span.file));
    let file = writer.create_element("file").with_attribute(("name", path.as_str()));
    file.write_inner_content(|writer| group.iter().try_for_each(|finding| error(report, finding, writer)))?;
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
    let (message, source) = (xml::text(&finding.message), format!("cudalint.{}", finding.rule.name));
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
