//! The README shows what the program prints, and the table of its rules. `BLESS=1` rewrites both.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cudalint::rules::ALL;

/// Replaces what stands between each `open` line and the next `close` line by what `inside` makes of it.
fn rewrite(text: &str, open: &str, close: &str, inside: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(open) {
        let start = at + open.len();
        let end = start + rest[start..].find(close).expect("the region ends");
        out.push_str(&rest[..start]);
        out.push_str(&inside(&rest[start..end]));
        out.push_str(close);
        rest = &rest[end + close.len()..];
    }
    out + rest
}

/// `$ cudalint …` and what it prints, run in the root of the repository.
fn console(block: &str) -> String {
    let mut out = String::new();
    for line in block.lines().filter(|line| line.starts_with("$ ")) {
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        let done = Command::new(env!("CARGO_BIN_EXE_cudalint"))
            .args(&words)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert_ne!(done.status.code(), Some(2), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        let _ = writeln!(out, "{line}\n{}", String::from_utf8_lossy(&done.stdout).trim_end());
    }
    out
}

fn table() -> String {
    let mut table = String::from("| rule | level | finds |\n|---|---|---|\n");
    for info in ALL.iter().map(|rule| rule.info()) {
        let room = info.name.replace('-', "_");
        let _ = writeln!(
            table,
            "| [`{}`](rules/{room}/README.md) | {} | {} |",
            info.name, info.default_level, info.summary
        );
    }
    table
}

#[test]
fn the_readme_shows_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let now = rewrite(&text, "```console\n", "```\n", console);
    let now = rewrite(&now, "<!-- table -->\n", "<!-- end -->\n", |_| table());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    } else {
        assert!(
            now == text,
            "BLESS=1 rewrites README.md\n{}",
            similar::TextDiff::from_lines(&text, &now).unified_diff()
        );
    }
}
