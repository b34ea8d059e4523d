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
