//! Which files are read, what is selected, and the exit status.

use super::World;

const STRIDED: &str = "__global__ void k() {\n  STRIDED;\n}\n";
const CLEAN: &str = "__global__ void k() {}\n";

const CONCISE: &str = "--output-format=concise";

#[test]
fn exit_status_is_zero_one_two() {
    let world = World::new(&[("bad.cu", STRIDED), ("good.cu", CLEAN)]);
    let clean = world.run(&["good.cu"]);
    assert_eq!((clean.code, clean.out.as_str(), clean.err.as_str()), (0, "", ""));
    assert_eq!(world.run(&["bad.cu"]).code, 1);
    assert_eq!(world.run(&["check", "bad.cu"]).code, 1);
    assert_eq!(world.run(&["bad.cu", "--exit-zero"]).code, 0);
    assert_eq!(world.run(&["bad.cu", "--fail-on=error"]).code, 0);
    assert_eq!(world.run(&["bad.cu", "--fail-on=never"]).code, 0);
    let missing = world.run(&["good.cu", "nowhere.cu"]);
    assert_eq!(missing.code, 2);
    assert_eq!(missing.err, "error: no such file or directory: nowhere.cu\n");
    assert_eq!(world.run(&["--no-such-option"]).code, 2);
    assert_eq!(world.run(&["--help"]).code, 0);
}

#[test]
fn a_directory_is_walked_in_order_without_what_git_ignores() {
    let world = World::new(&[
        ("b/z.cu", STRIDED),
        ("b/a.cuh", STRIDED),
        ("a.cu", STRIDED),
        ("host.cpp", "int STRIDED;"),
        ("device.hpp", "__device__ int STRIDED;"),
        ("notes.txt", "__device__ STRIDED"),
        ("build/x.cu", STRIDED),
        (".hidden/x.cu", STRIDED),
        (".gitignore", "build/\n"),
    ]);
    world.git(&["init", "-q"]);
    let ran = world.run(&["check", CONCISE]);
    let expected =
        ["a.cu:2", "b/a.cuh:2", "b/z.cu:2", "device.hpp:1"].map(|p| format!("{p} uncoalesced-access"));
    assert_eq!(ran.found(), expected);
    assert!(world.run(&[CONCISE, "--no-ignore"]).found().iter().any(|found| found.starts_with("build/x.cu")));
}

#[test]
fn explicit_paths_see_the_whole_project() {
    let world = World::new(&[
        ("src/k.cu", STRIDED),
        ("src/main.cu", CLEAN),
        ("include/sizes.h", "#define N 4\n"),
        ("include/other.h", "#define M 4\n"),
        ("src/use.cuh", "#include \"../include/sizes.h\"\n__device__ int x;"),
    ]);
    world.git(&["init", "-q"]);
    let all = world.run(&[CONCISE]);
    assert!(all.out.contains("STRIDED among 4 files"), "{}", all.out);
    assert_eq!(world.run(&[CONCISE, "src/k.cu"]).out, all.out);
    assert_eq!(world.run(&[CONCISE, "src"]).out, all.out);
    let inside = world.run_in("src", "", &[CONCISE, "k.cu"]);
    assert_eq!(inside.out, all.out.replace("src/k.cu", "k.cu"));
}

#[test]
fn includes_are_read_from_the_root_of_the_project() {
    // Named from a root that no setting gives, in quotes or angle brackets, from headers of headers: all are read.
    let world = World::new(&[
        ("src/k.cu", &format!("#include \"lib/sizes.h\"\n{STRIDED}")),
        ("lib/sizes.h", "#include \"lib/base.h\"\n#define N BASE\n"),
        ("lib/base.h", "#include <lib/far/unit.h>\n#define BASE UNIT\n"),
        ("lib/far/unit.h", "#define UNIT 4\n"),
        ("lib/unused.h", "#define M 4\n"),
    ]);
    world.git(&["init", "-q"]);
    let all = world.run(&[CONCISE]);
    assert!(all.out.contains("STRIDED among 4 files"), "{}", all.out);
    assert_eq!(world.run(&[CONCISE, "src"]).out, all.out);
}

#[test]
fn standard_input_stands_for_a_file() {
    let world = World::new(&[("src/k.cu", CLEAN), ("src/other.cu", CLEAN)]);
    let ran = world.run_in("", STRIDED, &[CONCISE, "-", "--stdin-filename", "src/k.cu"]);
    assert_eq!(ran.found(), ["src/k.cu:2 uncoalesced-access"]);
    assert!(ran.out.contains("among 2 files"), "{}", ran.out);
    let ran = world.run_in("", STRIDED, &[CONCISE, "-"]);
    assert_eq!(ran.found(), ["stdin.cu:2 uncoalesced-access"]);
}

#[test]
fn exclude_holds_for_named_files_only_where_forced() {
    let world =
        World::new(&[("third_party/k.cu", STRIDED), ("cudalint.toml", "exclude = [\"third_party/\"]\n")]);
    assert_eq!(world.run(&["."]).code, 0);
    assert_eq!(world.run(&["third_party/k.cu"]).code, 1);
    assert_eq!(world.run(&["third_party/k.cu", "--force-exclude"]).code, 0);
    assert_eq!(world.run(&["third_party/k.cu", "--force-exclude", "--isolated"]).code, 1);
    let world = World::new(&[("third_party/k.cu", STRIDED)]);
    assert_eq!(world.run(&["--exclude", "third_party"]).code, 0);
}

#[test]
fn a_binary_file_is_a_gap_and_not_a_failure() {
    let world = World::new(&[("good.cu", CLEAN)]);
    world.write("bin.cu", b"\x7fELF\0\0");
    assert_eq!(world.run(&["."]).code, 0);
}

#[test]
fn rules_are_selected_on_the_command_line() {
    let world = World::new(&[("k.cu", "STRIDED\nCONFLICT\nOFFSET\n")]);
    let found = |args: &[&str]| {
        let args: Vec<&str> = ["k.cu", CONCISE].iter().chain(args).copied().collect();
        let found = world.run(&args).found();
        found.iter().map(|found| found.split(' ').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["uncoalesced-access", "bank-conflict"]);
    assert_eq!(found(&["--select", "bank"]), ["bank-conflict"]);
    assert_eq!(
        found(&["--select=all", "--ignore=bank-conflict"]),
        ["uncoalesced-access", "misaligned-access"]
    );
    assert_eq!(found(&["--extend-select=misaligned-access"]).len(), 3);
    assert_eq!(found(&["--pedantic"]).len(), 3);
    assert_eq!(found(&["--min-confidence=proven"]), ["bank-conflict"]);
    let wrong = world.run(&["k.cu", "--select", "bank-conflit"]);
    assert_eq!(wrong.code, 2);
    assert_eq!(
        wrong.err,
        "error: --select: unknown rule or category `bank-conflit`\n  = help: did you mean `bank-conflict`?\n"
    );
}

#[test]
fn statistics_count_by_rule() {
    let world = World::new(&[("k.cu", "STRIDED\nCONFLICT\nCONFLICT\n")]);
    let ran = world.run(&["k.cu", "--statistics"]);
    assert_eq!(ran.out, "2  bank-conflict  a made-up rule\n1  uncoalesced-access  a made-up rule\n");
}

#[test]
fn excluded_files_inform_in_every_run() {
    let world = World::new(&[
        ("src/k.cu", STRIDED),
        ("gen/main.cu", STRIDED),
        ("cudalint.toml", "root = true\nexclude = [\"gen/\"]\n"),
    ]);
    let all = world.run(&[CONCISE]);
    assert!(all.out.contains("among 2 files") && all.found().len() == 1, "{}", all.out);
    assert_eq!(world.run(&[CONCISE, "src/k.cu", "gen/main.cu", "--force-exclude"]).out, all.out);
    assert_eq!(world.run_in("src", "", &[CONCISE]).out, all.out.replace("src/", ""));
}

#[test]
fn files_are_listed_and_an_empty_directory_is_named() {
    let world = World::new(&[("b.cu", ""), ("a.cu", ""), ("none/readme.txt", "")]);
    assert_eq!(world.run(&["--show-files"]).out, "a.cu\nb.cu\n");
    let ran = world.run(&["none"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "warning: none: no CUDA files here\n"));
}

#[test]
fn some_warnings_may_be_put_up_with() {
    let world = World::new(&[("a.cu", "STRIDED;\nCONFLICT;\n")]);
    let code = |args: &[&str]| world.run(&[&["a.cu"], args].concat()).code;
    assert_eq!((code(&["--max-warnings=1"]), code(&["--max-warnings=2"])), (1, 0));
    assert_eq!(code(&["--max-warnings=9", "--config", "rules.bank-conflict = \"error\""]), 1);
}

#[test]
fn standard_input_has_the_name_it_was_given() {
    let world = World::new(&[]);
    let ran = world.run_in("", "STRIDED;\n", &[CONCISE, "--stdin-filename=src/new.cu", "-"]);
    assert_eq!(ran.found(), ["src/new.cu:1 uncoalesced-access"]);
}
