//! Baselines, and what is new since a commit, in the index, or through a diff.

use super::World;

const CONCISE: &str = "--output-format=concise";

fn kernel(name: &str, body: &str) -> String {
    format!("__global__ void {name}() {{\n  {body}\n}}\n")
}

#[test]
fn a_baseline_silences_what_is_there_and_survives_moves() {
    let old = kernel("k", "STRIDED[0];");
    let world = World::new(&[("src/a.cu", &old), ("src/b.cu", &kernel("l", "CONFLICT;"))]);
    world.git(&["init", "-q"]);
    let ran = world.run(&["baseline", "create"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "cudalint-baseline.json: 2 findings accepted\n"));
    assert_eq!(world.run(&["."]).code, 0);
    assert_eq!(world.run(&[".", "--no-baseline"]).code, 1);
    assert_eq!(world.run(&["baseline", "create"]).code, 2);

    // Lines move, the file is renamed, white space changes: nothing is new.
    std::fs::remove_file(world.dir.path().join("src/a.cu")).unwrap();
    world.write("src/c.cu", format!("// more\n\n{}", old.replace("STRIDED[0]", "STRIDED[ 0 ]")));
    assert_eq!(world.run(&["."]).code, 0);
    assert_eq!(world.run(&["src/b.cu"]).code, 0);
    assert_eq!(world.run(&["src/c.cu"]).code, 0);

    // One more equal finding is new, whichever of the two it is.
    world.write("src/d.cu", &old);
    assert_eq!(world.run(&[CONCISE]).found().len(), 1);
    assert_eq!(world.run(&[CONCISE, "src/b.cu"]).found().len(), 0);
}

#[test]
fn stale_entries_are_reported_and_pruned() {
    let world = World::new(&[("a.cu", &kernel("k", "STRIDED;")), ("b.cu", &kernel("l", "CONFLICT;"))]);
    world.run(&["baseline", "create", "--baseline=known.json"]);
    world.write("a.cu", kernel("k", "fine;"));
    let ran = world.run(&[".", "--baseline", "known.json"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.err, "known.json: 1 accepted finding is gone; `cudalint baseline prune` drops them\n");
    // A run that did not look there cannot tell, nor one without the rule.
    assert_eq!(world.run(&["b.cu", "--baseline=known.json"]).err, "");
    assert_eq!(world.run(&[".", "--baseline=known.json", "--select=bank"]).err, "");
    let shown = world.run(&["baseline", "show", "--baseline=known.json"]);
    assert_eq!(
        shown.out,
        "a.cu: uncoalesced-access: `STRIDED;` in `k`  (gone)\nb.cu: bank-conflict: `CONFLICT;` in `l`\n"
    );
    assert_eq!(world.run(&["baseline", "prune", "--check", "--baseline=known.json"]).code, 1);
    let ran = world.run(&["baseline", "prune", "--baseline=known.json"]);
    assert_eq!(ran.err, "known.json: 1 finding accepted (was 2)\n");
    world.write("c.cu", kernel("m", "CONFLICT;"));
    assert_eq!(world.run(&[".", "--baseline=known.json"]).code, 1);
    world.run(&["baseline", "update", "--baseline=known.json"]);
    assert_eq!(world.run(&[".", "--baseline=known.json"]).code, 0);
    world.write("known.json", "{\"schemaVersion\": 7, \"findings\": []}");
    assert_eq!(world.run(&[".", "--baseline=known.json"]).code, 2);
}

#[test]
fn only_what_a_branch_adds_is_new() {
    let world =
        World::new(&[("src/a.cu", &kernel("k", "STRIDED;")), ("src/old.cu", &kernel("o", "CONFLICT;"))]);
    world.git(&["init", "-q"]);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "old"]);
    assert_eq!(world.run(&["--new-from", "HEAD"]).code, 0);
    world.git(&["checkout", "-qb", "work"]);
    // Lines move, a file is renamed: old. A second kernel and an untracked file: new.
    world.write("src/a.cu", format!("// comment\n{}{}", kernel("k", "STRIDED;"), kernel("n", "STRIDED;")));
    std::fs::rename(world.dir.path().join("src/old.cu"), world.dir.path().join("src/moved.cu")).unwrap();
    world.write("src/new.cu", kernel("u", "CONFLICT;"));
    let expected = ["src/a.cu:6 uncoalesced-access", "src/new.cu:2 bank-conflict"];
    assert_eq!(world.run(&[CONCISE, "--new-from", "main"]).found(), expected);
    let inside = world.run_in("src", "", &[CONCISE, "--new-from=main"]);
    assert_eq!(inside.found(), expected.map(|found| found.replace("src/", "")));
    // What the main branch fixed meanwhile is not new here.
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "work"]);
    world.git(&["checkout", "-q", "main"]);
    world.write("src/a.cu", kernel("k", "fine;"));
    world.git(&["commit", "-qam", "fix"]);
    world.git(&["checkout", "-q", "work"]);
    assert_eq!(world.run(&[CONCISE, "--new-from", "main"]).found(), expected);
    let wrong = world.run(&["--new-from", "nowhere"]);
    assert_eq!((wrong.code, wrong.err.as_str()), (2, "error: no commit `nowhere` in this repository\n"));
}

#[test]
fn what_is_staged_is_what_is_checked() {
    let world = World::new(&[("a.cu", &kernel("k", "STRIDED;"))]);
    world.git(&["init", "-q"]);
    world.git(&["add", "."]);
    assert_eq!(world.run(&[CONCISE, "--staged"]).found(), ["a.cu:2 uncoalesced-access"]);
    world.git(&["commit", "-qm", "old"]);
    assert_eq!(world.run(&["--staged"]).code, 0);
    world.write("b.cu", kernel("s", "CONFLICT;"));
    world.git(&["add", "."]);
    // The index counts, not what lies on disk now, nor what git does not know.
    world.write("b.cu", "// nothing\n");
    world.write("a.cu", kernel("k", "STRIDED; CONFLICT;"));
    world.write("untracked.cu", kernel("t", "STRIDED;"));
    assert_eq!(world.run(&[CONCISE, "--staged"]).found(), ["b.cu:2 bank-conflict"]);
}

#[test]
fn a_header_of_constants_counts_in_every_version() {
    let text = format!("#include \"sizes.h\"\n{}", kernel("k", "STRIDED;"));
    let world = World::new(&[("a.cu", &text), ("sizes.h", "constexpr int N = 4;\n")]);
    world.git(&["init", "-q"]);
    world.git(&["add", "."]);
    // The made-up rule says how many files it was given.
    let ran = world.run(&[CONCISE, "--staged"]);
    assert!(ran.out.contains("STRIDED among 2 files"), "{}", ran.out);
}

#[test]
fn a_diff_tells_what_is_new() {
    let world = World::new(&[("a.cu", &kernel("k", "STRIDED;"))]);
    let new = kernel("k", "STRIDED;\n  CONFLICT;");
    let old = world.read("a.cu");
    let diff = similar::TextDiff::from_lines(&old, &new);
    world.write("change.diff", diff.unified_diff().header("a/a.cu", "b/a.cu").to_string());
    assert_eq!(world.run(&["--diff-file", "change.diff"]).code, 2, "the diff is not applied yet");
    world.write("a.cu", &new);
    assert_eq!(world.run(&[CONCISE, "--diff-file", "change.diff"]).found(), ["a.cu:3 bank-conflict"]);
    let diff = world.read("change.diff");
    assert_eq!(world.run_in("", &diff, &[CONCISE, "--diff-file=-"]).found(), ["a.cu:3 bank-conflict"]);
}

#[test]
fn a_shallow_clone_is_named() {
    let world = World::new(&[("origin/a.cu", "x")]);
    let git = |args: &[&str]| world.git(&[&["-C", "origin"], args].concat());
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "1"]);
    git(&["commit", "-q", "--allow-empty", "-m", "2"]);
    let url = format!("file://{}/origin", world.dir.path().display());
    world.git(&["clone", "-q", "--depth=1", &url, "clone"]);
    let ran = world.run_in("clone", "", &["--new-from", "HEAD~1"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("this is a shallow clone") && ran.err.contains("fetch-depth: 0"), "{}", ran.err);
}

/// A repository with more programs than are read whole, each with an old finding.
fn large() -> World {
    let world = World::new(&[]);
    for at in 0..80 {
        let text = "__global__ void k(float *out) { out[threadIdx.x * 32] = 0; }\nint main() { k<<<1, 256>>>(0); }\n";
        world.write(&format!("other{at}/main.cu"), text);
    }
    world.git(&["init", "-q"]);
    world
}

/// A kernel that strides as `sizes.h` says, launched elsewhere.
const SIZED: &str =
    "#include \"sizes.h\"\n__global__ void sized(float *out) {\n  out[threadIdx.x * STRIDE] = 0;\n}\n";
const LAUNCH: &str = "__global__ void sized(float *out);\nvoid go() { sized<<<1, 256>>>(0); }\n";

#[test]
fn a_change_reaches_files_that_were_not_changed() {
    let world = large();
    world.write("a/k.cu", SIZED);
    world.write("a/launch.cu", LAUNCH);
    world.write("a/sizes.h", "#define STRIDE 1\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "old"]);
    assert_eq!(world.run_real(&["--staged", "--show-files"]).out, "");
    // 32 lanes, 4 B each, 4·32 B apart: 32 sectors where 4 would do.
    world.write("a/sizes.h", "#define STRIDE 32\n");
    world.git(&["add", "."]);
    for since in [&["--staged"][..], &["--new-from=HEAD"]] {
        let ran = world.run_real(&[&[CONCISE], since].concat());
        assert_eq!(ran.found(), ["a/k.cu:3 uncoalesced-access"], "{since:?}: {}", ran.err);
    }
    // None of the other programs is looked at.
    let files = "a/k.cu\na/launch.cu\na/sizes.h\n";
    assert_eq!(world.run_real(&["--staged", "--show-files"]).out, files);
    world.write("a/sizes.h", "#define STRIDE 1\n");
    world.git(&["add", "."]);
    // The launch decides, too: 8 lanes of a row are 32 B, one sector; 256 rows of one lane are not.
    world.write(
        "a/k.cu",
        "__global__ void sized(float *out) {\n  out[threadIdx.y + 64 * threadIdx.x] = 0;\n}\n",
    );
    world.write("a/launch.cu", LAUNCH.replace("256", "dim3(1, 256)"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "rows"]);
    world.write("a/launch.cu", LAUNCH);
    world.git(&["add", "."]);
    assert_eq!(world.run_real(&[CONCISE, "--staged"]).found(), ["a/k.cu:2 uncoalesced-access"]);
    assert_eq!(world.run_real(&["--staged", "--show-files"]).out, "a/k.cu\na/launch.cu\n");
}

#[test]
fn old_findings_stay_old_where_a_header_of_constants_goes() {
    let world =
        World::new(&[("a/k.cu", SIZED), ("a/launch.cu", LAUNCH), ("a/sizes.h", "#define STRIDE 32\n")]);
    world.git(&["init", "-q"]);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "old"]);
    std::fs::remove_file(world.dir.path().join("a/sizes.h")).unwrap();
    world.write("a/k.cu", SIZED.replace("#include \"sizes.h\"", "#define STRIDE 32"));
    world.git(&["add", "."]);
    assert_eq!(world.run_real(&["a/k.cu", "--no-baseline"]).code, 1);
    let ran = world.run_real(&[CONCISE, "--staged"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}

#[test]
fn only_what_was_asked_for_is_checked_in_another_version() {
    let world = large();
    world.write("cudalint.toml", "exclude = [\"third_party/\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "old"]);
    for path in ["src/a.cu", "third_party/b.cu", ".hidden/c.cu", "elsewhere/d.cu"] {
        world.write(path, kernel("s", "STRIDED;"));
    }
    world.git(&["add", "."]);
    // Staged and no longer on disk: the walk does not meet them.
    for directory in ["third_party", ".hidden", "elsewhere", "src"] {
        std::fs::remove_dir_all(world.dir.path().join(directory)).unwrap();
    }
    let all = ["elsewhere/d.cu:2 uncoalesced-access", "src/a.cu:2 uncoalesced-access"];
    assert_eq!(world.run(&[CONCISE, "--staged"]).found(), all);
    std::fs::create_dir(world.dir.path().join("src")).unwrap();
    assert_eq!(world.run(&[CONCISE, "--staged", "src"]).found(), all[1..]);
}
