//! JUnit XML: a suite per file with findings, a failed case per finding; one passed case where nothing was found.
//!
//! Only the elements and attributes that Jenkins' schema and Maven Surefire know.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::super::lint::finding::Finding;
use super::place::{Range, path_from_root};
use super::{Report, xml};

pub fn render(report: &Report<'_>) -> String {
    xml::document(|writer| {
        let found = report.findings.len();
        counted(writer, "testsuites", "cudalint", (found.max(1), found), |writer| match found {
            0 => counted(writer, "testsuite", "cudalint", (1, 0), |writer| {
                let case = writer.create_element("testcase");
                case.with_attributes([("name", "no findings"), ("classname", "cudalint")]).write_empty()?;
                Ok(())
            }),
            _ => report
                .findings
                .chunk_by(|a, b| a.span.file == b.span.file)
                .try_for_each(|group| suite(report, group, writer)),
        })
    })
}

type Out = Writer<Vec<u8>>;

/// An element with a name and how many cases of how many failed.
fn counted(
    writer: &mut Out,
    element: &str,
    name: &str,
    (tests, failures): (usize, usize),
    content: impl FnOnce(&mut Out) -> io::Result<()>,
) -> io::Result<()> {
    let (tests, failures) = (tests.to_string(), failures.to_string());
    let attributes =
        [("name", name), ("tests", tests.as_str()), ("failures", failures.as_str()), ("errors", "0")];
    writer.create_element(element).with_attributes(attributes).write_inner_content(content)?;
    Ok(())
}

/// The findings of one file.
fn suite(report: &Report<'_>, group: &[Finding], writer: &mut Out) -> io::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    let path = xml::text(&path_from_root(report, first.span.file));
    counted(writer, "testsuite", &path, (group.len(), group.len()), |writer| {
        group.iter().try_for_each(|finding| case(report, finding, &path, writer))
    })
}

fn case(report: &Report<'_>, finding: &Finding, path: &str, writer: &mut Out) -> io::Result<()> {
    let Range { line, column, .. } = Range::of(report.sources, finding.span);
    let name = format!("{} at {line}:{column}", finding.rule.name);
    let class = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let (message, level) = (xml::text(&finding.message), finding.level.to_string());
    let more = finding.notes.iter().chain(&finding.help).map(|text| format!("\n{text}")).collect::<String>();
    let description = format!("{path}:{line}:{column}: {message}{}", xml::text(&more));
    let case = writer.create_element("testcase");
    case.with_attributes([("name", name.as_str()), ("classname", class)]).write_inner_content(|writer| {
        let failure = writer.create_element("failure");
        let failure = failure.with_attributes([("message", message.as_str()), ("type", level.as_str())]);
        failure.write_text_content(BytesText::new(&description))?;
        Ok(())
    })?;
    Ok(())
}
