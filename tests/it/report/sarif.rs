//! SARIF, structurally; `tests/validate_sarif.sh` runs the outside validators on what this writes.

use cudalint::report::text::Style;
use cudalint::report::{Format, Report, render};
use serde_json::Value;

use super::{BANK_CONFLICT, Project, project};

fn sarif(report: &Report<'_>) -> Value {
    let text = render(report, Format::Sarif, &Style::PLAIN);
    assert_eq!(text, render(report, Format::Sarif, &Style::PLAIN));
    serde_json::from_str(&text).unwrap()
}

fn results(log: &Value) -> &Vec<Value> {
    log["runs"][0]["results"].as_array().unwrap()
}

/// The first result of a rule.
fn of_rule<'a>(log: &'a Value, rule: &str) -> &'a Value {
    results(log).iter().find(|result| result["ruleId"] == rule).unwrap()
}

#[test]
fn one_run_with_results_even_when_empty() {
    let log = sarif(&Project::empty().report());
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"].as_array().unwrap().len(), 1);
    assert_eq!(results(&log).len(), 0);
    assert_eq!(log["runs"][0]["automationDetails"]["id"], "cudalint/");
    assert!(log["runs"][0]["originalUriBaseIds"]["%SRCROOT%"].get("uri").is_none());
}

#[test]
fn rules_are_those_run_sorted_and_pointed_at() {
    let log = sarif(&project().report());
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let ids: Vec<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["bank-conflict", "irregular-access", "uncoalesced-access"]);
    for result in results(&log) {
        assert_eq!(rules[result["ruleIndex"].as_u64().unwrap() as usize]["id"], result["ruleId"]);
    }
    let bank = &rules[0];
    assert_eq!(bank["name"], "BankConflict");
    assert_eq!(bank["help"]["markdown"], BANK_CONFLICT.doc);
    assert_eq!(bank["fullDescription"]["text"], "Finds shared accesses whose lanes meet in a bank.");
    let tags: Vec<Value> = ["cuda", "performance", "bank"].map(Value::from).to_vec();
    assert_eq!(bank["properties"]["tags"], Value::Array(tags));
    assert_eq!(bank["properties"]["problem.severity"], "warning");
    // 30 of 31: p = 0.9677; (0.9677 + 0.0620 − 1.96·√(0.00101 + 0.00100)) / 1.1239 = 0.9419 / 1.1239 = 0.838.
    assert_eq!(bank["properties"]["precision"], "high");
    // Not measured: nothing is claimed.
    assert!(rules[1]["properties"].get("precision").is_none());
    assert!(!log.to_string().contains("security-severity"));
}

#[test]
fn places_are_relative_encoded_and_in_utf16_units() {
    let log = sarif(&project().report());
    assert_eq!(log["runs"][0]["columnKind"], "utf16CodeUnits");
    let load = &of_rule(&log, "uncoalesced-access");
    let place = &load["locations"][0]["physicalLocation"];
    // cuda/src/a b/é#1.cu below the root; é is C3 A9 in UTF-8.
    assert_eq!(place["artifactLocation"]["uri"], "cuda/src/a%20b/%C3%A9%231.cu");
    assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    // 4 spaces, `/* `, 2 + 1 + 2 units for the two emoji and é, ` */ `, `out[i] = `: 4+3+5+4+9 = 25 units before.
    assert_eq!(place["region"]["startLine"], 4);
    assert_eq!(place["region"]["startColumn"], 26);
    assert_eq!(place["region"]["endColumn"], 36);
    assert_eq!(place["region"]["snippet"]["text"], "in[i * 32]");
    // The header lies outside the root: absolute, without a base.
    let outside = &load["relatedLocations"][1]["physicalLocation"]["artifactLocation"];
    assert_eq!(outside["uri"], "file:///opt/inc/at.cuh");
    assert!(outside.get("uriBaseId").is_none());
}

#[test]
fn numbers_under_their_names() {
    let log = sarif(&project().report());
    let load = &of_rule(&log, "uncoalesced-access")["properties"];
    let expected = serde_json::json!({
        "kernel": "copy", "launchShape": "256", "launchSource": "launch site", "space": "global", "operation": "load",
        "accessBytes": 4, "laneStrideBytes": 128, "sectorsPerRequest": 32.0, "idealSectorsPerRequest": 4.0,
        "confidence": "shaped", "assumptions": [],
    });
    assert_eq!(*load, expected);
}

#[test]
fn the_trail_is_linked_and_ends_at_the_access() {
    let log = sarif(&project().report());
    let load = of_rule(&log, "uncoalesced-access");
    let text = load["message"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Load of `in[i * 32]` moves 32 sectors per request where 4 suffice. "),
        "{text}"
    );
    assert!(text.ends_with(" Index: [line 3](1), [line 2](2)."), "{text}");
    assert_eq!(load["relatedLocations"][0]["id"], 1);
    let steps = load["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[2]["location"]["physicalLocation"]["region"]["startLine"], 4);
}

#[test]
fn two_results_of_a_rule_on_a_line_stay_two() {
    let log = sarif(&project().report());
    let bank: Vec<&Value> =
        results(&log).iter().filter(|result| result["ruleId"] == "bank-conflict").collect();
    let prints: Vec<&str> =
        bank.iter().map(|r| r["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap()).collect();
    assert_eq!(prints.len(), 2);
    assert_eq!(format!("{}.2", prints[0]), prints[1]);
    assert_ne!(bank[0]["partialFingerprints"]["cudalint/v1"], bank[1]["partialFingerprints"]["cudalint/v1"]);
    assert_eq!(bank[1]["properties"]["wavefrontsPerRequest"], 32.0);
}

#[test]
fn fixes_that_may_be_applied_are_replacements() {
    let log = sarif(&project().report());
    let fixes = of_rule(&log, "bank-conflict")["fixes"].as_array().unwrap();
    let change = &fixes[0]["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "cuda/src/a%20b/%C3%A9%231.cu");
    assert_eq!(change["replacements"][0]["deletedRegion"]["startLine"], 8);
    assert_eq!(change["replacements"][0]["deletedRegion"]["startColumn"], 31);
    assert!(fixes[0]["description"]["text"].as_str().unwrap().contains("unsafe"));
    // Display only: no one-click change.
    let notes = results(&log)
        .iter()
        .find(|result| result["level"] == "note" && result["ruleId"] == "uncoalesced-access");
    assert!(notes.unwrap().get("fixes").is_none());
}

#[test]
fn allowed_findings_and_gaps_are_said() {
    let log = sarif(&project().report());
    let allowed = of_rule(&log, "irregular-access");
    let expected = serde_json::json!([{"kind": "inSource", "justification": "the table is tiny"}]);
    assert_eq!(allowed["suppressions"], expected);
    let notifications = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(notifications[0]["message"]["text"], "Not understood: Macro `AT` is not an expression.");
}

#[test]
fn no_level_above_the_highest_asked_for() {
    let project = project();
    let log = sarif(&Report { sarif_max_level: cudalint::lint::finding::Level::Warning, ..project.report() });
    // One error, two warnings, a note and the suppressed note.
    let count = |level: &str| results(&log).iter().filter(|result| result["level"] == level).count();
    assert_eq!((count("error"), count("warning"), count("note")), (0, 3, 2));
}
