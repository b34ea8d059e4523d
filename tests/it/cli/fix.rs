//! `--fix` and its kin.

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
