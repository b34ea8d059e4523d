//! `--fix` and its kin.

use std::collections::BTreeMap;
use std::path::Path;

use super::World;

#[test]
fn safe_fixes_are_applied_and_unsafe_ones_on_request() {
    let text = "\u{feff}void k() {\r\n  PLAIN CONFLICT PLAIN;\r\n}\r\n";
    let world = World::new(&[("k.cu", text), ("clean.cu", "x")]);
    let ran = world.run(&["--fix", "--output-format=concise"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.found(), ["k.cu:2 bank-conflict"]);
    assert!(ran.err.starts_with("fixed 2 findings in 1 file\n"), "{}", ran.err);
    assert_eq!(world.read("k.cu"), text.replace("PLAIN", "RESTRICT"));
    let ran = world.run(&["--fix", "--unsafe-fixes"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert_eq!(world.read("k.cu"), text.replace("PLAIN", "RESTRICT").replace("CONFLICT", "PADDED"));
    let files: Vec<_> = std::fs::read_dir(world.dir.path()).unwrap().collect();
    assert_eq!(files.len(), 2, "nothing is left beside the files");
}

#[test]
fn a_diff_changes_nothing() {
    let world = World::new(&[("k.cu", "PLAIN;\n")]);
    let ran = world.run(&["--diff"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.out, "--- a/k.cu\n+++ b/k.cu\n@@ -1 +1 @@\n-PLAIN;\n+RESTRICT;\n");
    assert_eq!(world.read("k.cu"), "PLAIN;\n");
    let clean = World::new(&[("k.cu", "CONFLICT;\n")]);
    assert_eq!((clean.run(&["--diff"]).code, clean.run(&["--diff", "--unsafe-fixes"]).code), (0, 1));
}

#[test]
fn fix_only_reports_nothing() {
    let world = World::new(&[("k.cu", "PLAIN STRIDED;\n")]);
    let ran = world.run(&["--fix-only", "-q"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    assert_eq!(world.read("k.cu"), "RESTRICT STRIDED;\n");
}

#[test]
fn a_fix_that_makes_something_worse_is_taken_back_and_the_others_stay() {
    // `SPOILS` becomes `STRIDED`, which is a finding.
    let world = World::new(&[("k.cu", "PLAIN SPOILS PLAIN;\n")]);
    let ran = world.run(&["--fix", "--output-format=concise"]);
    assert_eq!(ran.found(), ["k.cu:1 spoiling-fix"]);
    assert_eq!(world.read("k.cu"), "RESTRICT SPOILS RESTRICT;\n");
    assert!(ran.err.contains("not fixed, it would make something else worse: write STRIDED"), "{}", ran.err);
}

#[test]
fn what_a_fix_leaves_idle_goes_next() {
    let world = World::new(&[("k.cu", "PLAIN;\nPADDED; // cudalint: allow(bank-conflict)\n")]);
    world.run(&["--fix"]);
    assert_eq!(world.read("k.cu"), "RESTRICT;\nPADDED;\n");
}

#[test]
fn standard_input_is_fixed_to_standard_output() {
    let world = World::new(&[]);
    let ran = world.run_in("", "PLAIN;\n", &["-", "--fix", "-q"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "RESTRICT;\n"));
}

#[cfg(unix)]
#[test]
fn links_and_permissions_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let world = World::new(&[("real/k.cu", "PLAIN;\n")]);
    let real = world.dir.path().join("real/k.cu");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, world.dir.path().join("link.cu")).unwrap();
    world.run(&["link.cu", "--fix"]);
    assert!(std::fs::symlink_metadata(world.dir.path().join("link.cu")).unwrap().is_symlink());
    assert_eq!(world.read("real/k.cu"), "RESTRICT;\n");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

/// Every kernel that documents a rule or is a fixture: after its fixes nothing new is found, nothing is understood less,
/// and there is nothing left to fix.
#[test]
fn fixes_of_every_room_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut directories = vec![root.join("fixtures/kernels"), root.join("rules")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let text = || std::fs::read_to_string(&path).unwrap();
            let name = path.display().to_string();
            match path.extension().and_then(|extension| extension.to_str()) {
                None if path.is_dir() => directories.push(path),
                Some("cu") => texts.push((name, text())),
                Some("md") => {
                    let fences = text();
                    let fences =
                        fences.split("```cuda\n").skip(1).filter_map(|rest| rest.split("```").next());
                    texts.extend(
                        fences.zip(1..).map(|(fence, at)| (format!("{name}, {at}"), fence.to_owned())),
                    );
                }
                _ => {}
            }
        }
    }
    let mut fixed: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, text) in &texts {
        let world = World::new(&[("k.cu", text)]);
        let before = said(&world);
        world.run_real(&["--unsafe-fixes", "--fix-only", "--quiet", "k.cu"]);
        let after = said(&world);
        let new = after.iter().find(|(what, count)| before.get(*what).is_none_or(|old| old < count));
        assert_eq!(new, None, "{name}");
        let again = world.run_real(&["--unsafe-fixes", "--diff", "k.cu"]);
        assert_eq!((again.code, again.out.as_str()), (0, ""), "{name}");
        for rule in ["bank-conflict", "missing-restrict"] {
            let count = |said: &BTreeMap<String, usize>| said.get(rule).copied().unwrap_or(0);
            *fixed.entry(rule).or_default() += count(&before) - count(&after);
        }
    }
    assert!(fixed.values().all(|count| *count > 0), "{fixed:?}");
}

/// How often each rule was found, and how many places were not understood.
fn said(world: &World) -> BTreeMap<String, usize> {
    let ran = world.run_real(&["--output-format=json", "k.cu"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let mut said = BTreeMap::from([("gaps".to_owned(), report["gaps"].as_array().unwrap().len())]);
    for finding in report["findings"].as_array().unwrap() {
        *said.entry(finding["rule"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    said
}
