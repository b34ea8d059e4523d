//! JUnit XML: a suite per file with findings, a failed case per finding; one passed case where nothing was found.

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use super::super::lint::finding::Finding;
use super::Report;
use super::place::{Range, path_from_root};

pub fn render(report: &Report<'_>) -> String {
    let mut junit = Junit::new("cudalint");
    for group in report.findings.chunk_by(|a, b| a.span.file == b.span.file) {
        let Some(first) = group.first() else { continue };
        let path = path_from_root(report, first.span.file);
        let mut suite = TestSuite::new(path.as_str());
        suite.add_test_cases(group.iter().map(|finding| case(report, finding, &path)));
        junit.add_test_suite(suite);
    }
    if report.findings.is_empty() {
        let mut suite = TestSuite::new("cudalint");
        let mut case = TestCase::new("no findings", TestCaseStatus::success());
        case.set_classname("cudalint");
        suite.add_test_case(case);
        junit.add_test_suite(suite);
    }
    // Writing to a String fails for no content: quick-junit drops what XML cannot hold.
    junit.to_string().unwrap_or_default()
}

fn case(report: &Report<'_>, finding: &Finding, path: &str) -> TestCase {
    let Range { line, column, .. } = Range::of(report.sources, finding.span);
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let more = finding.notes.iter().chain(&finding.help).map(|text| format!("\n{text}")).collect::<String>();
    status
        .set_message(finding.message.as_str())
        .set_type(finding.level.to_string())
        .set_description(format!("{path}:{line}:{column}: {}{more}", finding.message));
    let mut case = TestCase::new(format!("{} at {line}:{column}", finding.rule.name), status);
    case.set_classname(path.rsplit_once('.').map_or(path, |(stem, _)| stem));
    case
}
