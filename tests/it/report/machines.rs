//! Formats for other programs: their structure, and their escaping on names and messages that need it.

use cudalint::report::inspect::{
    self, Inspect, InspectAccess, InspectFile, InspectGap, InspectKernel, InspectShape,
};
use cudalint::report::text::Style;
use cudalint::report::{Format, Report, github, patch, render};
use serde_json::Value;

use super::{Project, project};

fn rendered(report: &Report<'_>, format: Format) -> String {
    render(report, format, &Style::PLAIN)
}

#[test]
fn format_names_are_read_back() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert_eq!("text".parse(), Ok(Format::Full));
    assert!(
        "yaml".parse::<Format>().unwrap_err().starts_with("unknown format `yaml`; one of full, concise,")
    );
}

#[test]
fn github_escapes_and_sorts_by_severity() {
    insta::assert_snapshot!(rendered(&project().report(), Format::Github));
}

#[test]
fn github_says_what_it_does_not_show() {
    let mut project = project();
    let warning = project.findings[0].clone();
    project.findings = vec![warning; 25];
    let text = rendered(&project.report(), Format::Github);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("::warning ")).count(), 10);
    assert_eq!(lines.len(), 11);
    assert!(lines[10].starts_with("::notice title=cudalint::15 of 25 findings"), "{}", lines[10]);
    // Notices alone: nine of them leave a place for the last.
    for finding in &mut project.findings {
        finding.level = cudalint::lint::finding::Level::Note;
    }
    let text = rendered(&project.report(), Format::Github);
    assert_eq!(text.lines().count(), 10);
    assert!(text.lines().last().unwrap().contains("16 of 25"));
}

#[test]
fn step_summary() {
    insta::assert_snapshot!(github::step_summary(&project().report()));
    assert!(!github::step_summary(&Project::empty().report()).contains("| level"));
}

#[test]
fn gitlab() {
    let issues: Vec<Value> = serde_json::from_str(&rendered(&project().report(), Format::Gitlab)).unwrap();
    assert_eq!(issues.len(), 4);
    let mut prints: Vec<&str> = issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), 4);
    let first = serde_json::json!({"path": "cuda/src/a b/é#1.cu", "lines": {"begin": 4, "end": 4}});
    assert_eq!(issues[0]["location"], first);
    assert_eq!(issues[0]["check_name"], "uncoalesced-access");
    let severities: Vec<&str> = issues.iter().map(|issue| issue["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["minor", "info", "major", "minor"]);
    assert_eq!(rendered(&Project::empty().report(), Format::Gitlab), "[]\n");
}

#[test]
fn junit() {
    insta::assert_snapshot!(rendered(&project().report(), Format::Junit));
    let empty = rendered(&Project::empty().report(), Format::Junit);
    assert!(empty.contains(r#"<testcase name="no findings" classname="cudalint"/>"#), "{empty}");
}

#[test]
fn checkstyle() {
    insta::assert_snapshot!(rendered(&project().report(), Format::Checkstyle));
    let empty = rendered(&Project::empty().report(), Format::Checkstyle);
    assert!(empty.contains(r#"<checkstyle version="4.3">"#), "{empty}");
}

#[test]
fn rdjson() {
    let document: Value = serde_json::from_str(&rendered(&project().report(), Format::Rdjson)).unwrap();
    let load = &document["diagnostics"][0];
    assert_eq!(load["severity"], "WARNING");
    assert_eq!(load["code"]["value"], "uncoalesced-access");
    // 25 UTF-16 units before, of which two emoji of 2 units are 4 bytes each and é is 2: 25 + 4 + 1 = 30 bytes.
    assert_eq!(load["location"]["range"]["start"], serde_json::json!({"line": 4, "column": 31}));
    assert_eq!(load["location"]["range"]["end"], serde_json::json!({"line": 4, "column": 41}));
    let padding = &document["diagnostics"][2]["suggestions"][0];
    assert_eq!(padding["text"], "33];\n    int x");
    assert_eq!(padding["range"]["start"], serde_json::json!({"line": 8, "column": 31}));
}

#[test]
fn every_format_is_the_same_twice() {
    for format in Format::ALL {
        assert_eq!(rendered(&project().report(), format), rendered(&project().report(), format), "{format}");
    }
}

#[test]
fn written_for_the_validators() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, project) in [("full", project()), ("empty", Project::empty())] {
        for format in Format::ALL {
            let text = rendered(&project.report(), format);
            std::fs::write(directory.join(format!("{name}.{format}")), text).unwrap();
        }
    }
}

#[test]
fn a_patch_is_a_unified_diff() {
    let expected = "--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n";
    assert_eq!(patch("k.cu", "a\nb\nd\n", "a\nc\nd\n"), expected);
    assert_eq!(patch("k.cu", "a\n", "a\n"), "");
}

fn inspected() -> Inspect {
    let strided = InspectAccess {
        line: 9,
        column: 5,
        end_line: 9,
        space: "global".to_owned(),
        operation: "load".to_owned(),
        access_bytes: Some(4),
        base: Some("in".to_owned()),
        index: Some("128·tid.x + 32768·bid.x".to_owned()),
        lane_stride_bytes: Some(128),
        sectors_per_request: Some(32.0),
        ideal_sectors_per_request: Some(4.0),
        confidence: Some("shaped".to_owned()),
        ..InspectAccess::default()
    };
    let shared = InspectAccess {
        line: 12,
        column: 17,
        end_line: 13,
        file: Some("tile.cuh".to_owned()),
        space: "shared".to_owned(),
        operation: "store".to_owned(),
        sectors_per_request: None,
        ideal_sectors_per_request: None,
        // 1 + 2 + 4 wavefronts in three iterations.
        wavefronts_per_request: Some(7.0 / 3.0),
        ideal_wavefronts_per_request: Some(1.0),
        confidence: Some("assumed".to_owned()),
        assumptions: vec!["n > 1".to_owned(), "the pitch of the tile is a multiple of 8 elements".to_owned()],
        ..strided.clone()
    };
    let gather = InspectAccess {
        line: 14,
        lane_stride_bytes: None,
        sectors_per_request: None,
        ideal_sectors_per_request: None,
        confidence: None,
        index: None,
        unknown: Some("`idx[i]` is read from memory".to_owned()),
        ..strided.clone()
    };
    let shape =
        InspectShape { block: [256, 1, 1], from: "launch site".to_owned(), line: Some(40), file: None };
    let bounds = InspectShape { block: [16, 16, 1], from: "hypothesis".to_owned(), line: None, file: None };
    let kernel = InspectKernel {
        name: "k<float>".to_owned(),
        line: 7,
        launch_shapes: vec![shape, bounds],
        accesses: vec![strided, shared, gather],
    };
    let empty = InspectKernel { name: "nothing".to_owned(), line: 20, ..InspectKernel::default() };
    let gaps = vec![InspectGap { line: 3, reason: "`asm goto`".to_owned() }];
    Inspect::new(vec![InspectFile { path: "a.cu".to_owned(), gaps, kernels: vec![kernel, empty] }])
}

#[test]
fn inspect_table() {
    let table = inspect::table(&inspected(), 100);
    assert!(table.lines().all(|line| line.chars().count() <= 100));
    insta::assert_snapshot!(table);
}

#[test]
fn inspect_contract() {
    let text = inspect::json(&inspected());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::from_str::<Inspect>(&text).unwrap(), inspected());
    let expected = serde_json::json!({
        "line": 9, "column": 5, "endLine": 9, "space": "global", "operation": "load", "accessBytes": 4, "base": "in",
        "index": "128·tid.x + 32768·bid.x", "laneStrideBytes": 128, "sectorsPerRequest": 32.0,
        "idealSectorsPerRequest": 4.0, "wavefrontsPerRequest": null, "idealWavefrontsPerRequest": null,
        "confidence": "shaped", "assumptions": [], "unknown": null,
    });
    assert_eq!(value["schemaVersion"], 1);
    assert_eq!(value["files"][0]["kernels"][0]["accesses"][0], expected);
    assert_eq!(value["files"][0]["kernels"][0]["accesses"][1]["file"], "tile.cuh");
    assert_eq!(value["files"][0]["gaps"][0], serde_json::json!({"line": 3, "reason": "`asm goto`"}));
    let shape = serde_json::json!({"block": [256, 1, 1], "from": "launch site", "line": 40});
    assert_eq!(value["files"][0]["kernels"][0]["launchShapes"][0], shape);
}

/// Runs a validator of others on what is written for them; `None` where it is not installed.
fn validated(program: &str, args: &[&std::ffi::OsStr]) -> Option<Result<(), String>> {
    let output = std::process::Command::new(program).args(args).output().ok()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}{}", text(&output.stdout), text(&output.stderr))),
    })
}

#[test]
fn gitlab_junit_and_checkstyle_keep_to_their_schemas() {
    let schemas = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let world = tempfile::tempdir().unwrap();
    for (name, project) in [("full", project()), ("empty", Project::empty())] {
        for (format, schema) in [
            (Format::Gitlab, "gitlab.json"),
            (Format::Junit, "junit.xsd"),
            (Format::Checkstyle, "checkstyle.xsd"),
        ] {
            let (file, schema) = (world.path().join(format!("{name}.{format}")), schemas.join(schema));
            std::fs::write(&file, rendered(&project.report(), format)).unwrap();
            let (file, schema) = (file.as_os_str(), schema.as_os_str());
            let (program, found) = match format {
                Format::Gitlab => (
                    "check-jsonschema",
                    validated("check-jsonschema", &["--schemafile".as_ref(), schema, file]),
                ),
                _ => (
                    "xmlschema-validate",
                    validated("xmlschema-validate", &["--schema".as_ref(), schema, file]),
                ),
            };
            match found {
                None => eprintln!("skipped: {name}.{format}: {program} is not installed"),
                Some(result) => assert_eq!(result, Ok(()), "{name}.{format}"),
            }
        }
    }
}
