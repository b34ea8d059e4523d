//! Comments that silence, from the command line.

use super::World;

const CONCISE: &str = "--output-format=concise";

#[test]
fn allowed_findings_are_silent_and_shown_on_request() {
    let world = World::new(&[("k.cu", "STRIDED // cudalint: allow(uncoalesced-access) read once\n")]);
    let ran = world.run(&["k.cu"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let ran = world.run(&["k.cu", "--show-suppressed"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "k.cu:1:1: allowed[uncoalesced-access] read once\n"));
}

#[test]
fn an_allow_of_nothing_is_found_and_fixed_unless_its_rule_did_not_run() {
    let world = World::new(&[("k.cu", "x; // cudalint: allow(bank-conflict)\ny;\n")]);
    let ran = world.run(&[CONCISE]);
    assert_eq!((ran.code, ran.found()), (1, vec!["k.cu:1 unused-allow".to_owned()]));
    assert_eq!(world.run(&["--ignore=bank-conflict"]).code, 0);
    assert_eq!(world.run(&["--ignore=unused-allow"]).code, 0);
    let ran = world.run(&["--fix"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "fixed 1 finding in 1 file\n"));
    assert_eq!(world.read("k.cu"), "x;\ny;\n");
}

#[test]
fn comments_are_added_for_all_findings() {
    let world = World::new(&[("k.cu", "a;\r\n  STRIDED CONFLICT;\r\n"), ("l.cu", "OFFSET")]);
    let ran = world.run(&["--add-allow=old code"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "added 1 allow comment to 1 file\n"));
    let text =
        "a;\r\n  // cudalint: allow(bank-conflict, uncoalesced-access) old code\r\n  STRIDED CONFLICT;\r\n";
    assert_eq!(world.read("k.cu"), text);
    assert_eq!(world.run(&["."]).code, 0);
    let ran = world.run(&["--add-allow", "--diff"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}
