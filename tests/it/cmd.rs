//! The program itself, as documents show it: `tests/cmd`. `TRYCMD=overwrite` rewrites the outputs.

use std::io::Read as _;
use std::process::{Command, Stdio};

#[test]
fn commands_print_what_their_documents_say() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").case("tests/cmd/*.md");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [&["man", "check"][..], &["config", "schema"], &["completions", "bash"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cudalint"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""), "{args:?}");
    }
}
