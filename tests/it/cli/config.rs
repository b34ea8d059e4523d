//! `cudalint.toml`.

use super::World;

const CONCISE: &str = "--output-format=concise";
const BOTH: &str = "STRIDED\nCONFLICT\n";

#[test]
fn the_nearest_file_wins_and_extends_on_request() {
    let world = World::new(&[
        ("a.cu", BOTH),
        ("sub/b.cu", BOTH),
        ("sub/deep/c.cu", BOTH),
        ("cudalint.toml", "ignore = [\"bank-conflict\"]\n"),
        ("sub/.cudalint.toml", "extend = \"../cudalint.toml\"\n[rules]\nuncoalesced-access = \"error\"\n"),
        ("sub/deep/cudalint.toml", "[rules]\nuncoalesced-access = \"off\"\n"),
    ]);
    let ran = world.run(&[CONCISE]);
    assert_eq!(
        ran.found(),
        ["a.cu:1 uncoalesced-access", "sub/b.cu:1 uncoalesced-access", "sub/deep/c.cu:2 bank-conflict"]
    );
    assert!(ran.out.contains("sub/b.cu:1:1: error[uncoalesced-access]"), "{}", ran.out);
    assert_eq!(world.run(&[CONCISE, "--isolated"]).found().len(), 6);
}

#[test]
fn overrides_hold_for_their_paths() {
    let world = World::new(&[
        ("src/a.cu", BOTH),
        ("tests/a.cu", BOTH),
        (
            "cudalint.toml",
            "[[overrides]]\npaths = [\"tests/**\"]\nignore = [\"all\"]\nextend-select = [\"bank\"]\n",
        ),
    ]);
    let found = world.run(&[CONCISE]).found();
    assert_eq!(
        found,
        ["src/a.cu:1 uncoalesced-access", "src/a.cu:2 bank-conflict", "tests/a.cu:2 bank-conflict"]
    );
}

#[test]
fn inline_settings_lie_on_top() {
    let world = World::new(&[("a.cu", BOTH), ("cudalint.toml", "fail-on = \"never\"\n")]);
    assert_eq!(world.run(&["."]).code, 0);
    assert_eq!(world.run(&[".", "--config", "fail-on = 'warn'"]).code, 1);
    let ran = world.run(&[CONCISE, "--config", "rules.bank-conflict = \"off\""]);
    assert_eq!(ran.found(), ["a.cu:1 uncoalesced-access"]);
    world.write("other.toml", "select = [\"bank\"]\n");
    assert_eq!(world.run(&[CONCISE, "--config=other.toml"]).found(), ["a.cu:2 bank-conflict"]);
}

#[test]
fn errors_show_the_place_and_what_was_meant() {
    let world = World::new(&[("a.cu", BOTH), ("cudalint.toml", "root = true\nselct = [\"all\"]\n")]);
    let ran = world.run(&["."]);
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.err,
        "error: unknown key `selct`\n --> cudalint.toml:2:1\n  |\n2 | selct = [\"all\"]\n  | ^^^^^\n  = help: did you mean `select`?\n"
    );
    for (text, message) in [
        ("select = [\"bonk\"]\n", "unknown rule or category `bonk`"),
        ("extend = \"cudalint.toml\"\n", "`extend` leads back"),
        ("extend = \"none.toml\"\n", "no such file: none.toml"),
        ("define = [\"1x\"]\n", "not a definition"),
        ("[[kernel]]\nname = \"k\"\nblock = 2048\n", "not a block"),
        ("[[kernel]]\nname = \"k[\"\nblock = 32\n", "not a glob"),
        ("exclude = [\"a{b\"]\n", "not a glob"),
        ("[rules]\nbank = \"error\"\n", "`bank` is not a rule"),
    ] {
        world.write("cudalint.toml", text);
        let ran = world.run(&["."]);
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.err.contains(message) && ran.err.contains("--> cudalint.toml:"), "{text}: {}", ran.err);
    }
}

#[test]
fn show_names_the_place_of_every_value() {
    let world = World::new(&[
        ("a/k.cu", ""),
        ("base.toml", "fail-on = \"error\"\nselect = [\n  \"all\",\n]\n[rules]\nbank-conflict = \"note\"\n"),
        (
            "a/cudalint.toml",
            "extend = \"../base.toml\"\nfail-on = \"warn\"\n\n[rules]\nbank-conflict = \"error\"\n\n\
             [[kernel]]\nname = \"k*\"\nblock = 32\n",
        ),
    ]);
    let ran =
        world.run(&["config", "show", "a/k.cu", "--config", "preview = true", "--ignore=alias", "-DN=4"]);
    let expected = "\
# a/k.cu
edition = \"2026\"                      # default
persona = \"default\"                   # default
preview = true                        # --config
min-confidence = \"assumed\"            # default
fail-on = \"warn\"                      # a/cudalint.toml:2
rules.bank-conflict = \"error\"         # a/cudalint.toml:5
select = [ \"all\", ]                   # base.toml:2
extend = \"../base.toml\"               # a/cudalint.toml:1
kernel = { name = \"k*\", block = 32 }  # a/cudalint.toml:7
ignore = [\"alias\"]                    # command line
define = [\"N=4\"]                      # command line
# rules: bank-conflict (error), misaligned-access (warning), spoiling-fix (warning), uncoalesced-access (warning), \
unused-allow (warning)
";
    assert_eq!(ran.out, expected, "{}", ran.err);
}

#[test]
fn check_reports_every_file() {
    let world =
        World::new(&[("good.toml", "root = true\n"), ("bad.toml", "rot = true\n"), ("worse.toml", "= 3\n")]);
    assert_eq!(world.run(&["config", "check", "good.toml"]).code, 0);
    let ran = world.run(&["config", "check", "good.toml", "bad.toml", "worse.toml"]);
    assert_eq!((ran.code, ran.err.matches("error: ").count()), (2, 2), "{}", ran.err);
    assert_eq!(world.run(&["config", "check"]).code, 0);
    world.write("cudalint.toml", "edition = \"1999\"\n");
    assert_eq!(world.run(&["config", "check"]).code, 2);
}

#[test]
fn the_first_file_is_right_and_complete() {
    let world = World::new(&[]);
    assert_eq!(world.run(&["init"]).code, 0);
    assert_eq!(world.run(&["config", "check"]).code, 0);
    // Every line that is commented out is right too.
    let text = world.read("cudalint.toml");
    let live = |line: &str| match line.strip_prefix("# ") {
        Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest.to_owned(),
        _ => line.to_owned(),
    };
    world.write("cudalint.toml", text.lines().map(live).collect::<Vec<_>>().join("\n"));
    let ran = world.run(&["config", "check"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(world.run(&["init"]).code, 2);
}

#[test]
fn the_schema_file_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lint/cudalint.schema.json");
    let schema = cudalint::lint::config::schema();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap() == schema, "run with BLESS=1");
}

#[test]
fn pyproject_has_a_table_for_us() {
    let world = World::new(&[
        ("a.cu", "STRIDED;\n"),
        ("sub/a.cu", "STRIDED;\n"),
        ("pyproject.toml", "[project]\nname = \"x\"\n\n[tool.cudalint]\nignore = [\"all\"]\n"),
        ("sub/pyproject.toml", "[project]\nname = \"cudalint\"\n"),
    ]);
    assert_eq!(world.run(&["."]).code, 0);
    let shown = world.run(&["config", "show", "sub/a.cu"]);
    assert!(shown.out.contains("ignore = [\"all\"]            # pyproject.toml:5"), "{}", shown.out);
    world.write("pyproject.toml", "[project]\nname = 1\n[tool.cudalint]\nignroe = []\n");
    let ran = world.run(&["."]);
    assert_eq!(ran.code, 2);
    let expected = "error: unknown key `ignroe`\n --> pyproject.toml:4:1\n";
    assert!(ran.err.starts_with(expected) && ran.err.contains("did you mean `ignore`?"), "{}", ran.err);
    // Our own file goes first, and what is broken is not ours.
    world.write("cudalint.toml", "");
    assert_eq!(world.run(&["a.cu", "--exit-zero"]).code, 0);
    world.write("sub/pyproject.toml", "# cudalint\n= broken");
    assert_eq!(world.run(&["sub/a.cu", "--exit-zero"]).code, 0);
}

#[test]
fn errors_say_what_to_write() {
    let world = World::new(&[("a.cu", "STRIDED;\n")]);
    let said = |text: &str| {
        world.write("cudalint.toml", text);
        let ran = world.run(&["a.cu"]);
        assert_eq!(ran.code, 2, "{text}");
        ran.err
    };
    assert!(said("select = \"all\"\n").contains("= help: write a list: `[\"all\"]`"));
    assert!(said("fail-on = 3\n").contains("`3` is no word in quotes"));
    let missing = said("baseline = \"none.json\"\n");
    assert!(missing.contains("--> cudalint.toml:1:12") && missing.contains("baseline create"), "{missing}");
    assert!(!said("select = [\"all\"\n").contains("did you mean"));
    world.write("cudalint.toml", "");
    let ran = world.run(&["a.cu", "--config", "extend = \"other.toml\""]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`extend` works in a file only"), "{}", ran.err);
}

#[test]
fn show_says_what_is_excluded() {
    let world = World::new(&[("a/x.cu", ""), ("b.cu", ""), ("cudalint.toml", "exclude = [\"a/\"]\n")]);
    assert!(world.run(&["config", "show", "a/x.cu"]).out.contains("\n# excluded:"));
    assert!(!world.run(&["config", "show", "b.cu"]).out.contains("excluded"));
}
