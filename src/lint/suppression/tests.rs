use super::super::finding::Category;
use super::*;

static BANK: RuleInfo = RuleInfo {
    name: "bank-conflict",
    summary: "",
    category: Category::Bank,
    default_level: Level::Warning,
    since: "0.1.0",
    measured: None,
    doc: "",
};
static RULES: [&RuleInfo; 2] = [&BANK, &UNUSED_ALLOW];

/// Each `@` is a bank conflict. Returns the lines kept, the reasons, and the messages about comments.
fn applied(text: &str) -> (Vec<u32>, Vec<String>, Vec<String>) {
    let (sources, applied) = run(text);
    let lines = applied.kept.iter().map(|finding| sources.line(finding.span)).collect();
    let reasons = applied.suppressed.into_iter().map(|(_, reason)| reason).collect();
    (lines, reasons, applied.unused.into_iter().map(|finding| finding.message).collect())
}

fn run(text: &str) -> (Sources, Applied) {
    let mut sources = Sources::default();
    let file = sources.add(SourceFile::new("a.cu", text.to_owned()));
    let finding = |(at, _)| Finding {
        rule: &BANK,
        level: Level::Warning,
        span: Span::new(file, at, at + 1),
        message: String::new(),
        label: String::new(),
        notes: Vec::new(),
        help: None,
        trail: Vec::new(),
        kernel: String::new(),
        access_text: String::new(),
        numbers: Numbers::default(),
        fix: None,
    };
    let gap = |(at, _)| Gap { span: Span::new(file, at, at + 1), reason: String::new() };
    let gaps: Vec<Gap> = text.match_indices('?').map(gap).collect();
    let findings = text.match_indices('@').map(finding).collect();
    let applied = apply(&sources, file, findings, &gaps, &RULES, &|_| true);
    (sources, applied)
}

#[test]
fn the_line_the_statement_the_block_and_the_file() {
    let none: (Vec<u32>, Vec<String>, Vec<String>) = Default::default();
    let silenced = |count| (vec![], vec![String::new(); count], vec![]);
    assert_eq!(applied("a;"), none);
    assert_eq!(applied("@; // cudalint: allow(bank-conflict)\n@;"), (vec![2], vec![String::new()], vec![]));
    assert_eq!(applied("/* cudalint: allow(bank) */\n#pragma unroll\n\n// b\nf(a;\n @,\n @);\n@;").0, [8]);
    assert_eq!(applied("// cudalint: allow-begin(all)\n@;@;\n// cudalint: allow-end(all)\n"), silenced(2));
    assert_eq!(applied("@;\n// cudalint: allow-file(all)\n"), silenced(1));
    assert_eq!(applied("@; // cudalint: allow(bank-conflict): read once").1, ["read once"]);
    assert_eq!(applied("const char *s = \"// cudalint: allow(all)\"; @;").0, [1]);
}

#[test]
fn nolint_is_honoured_where_it_names_us() {
    assert_eq!(applied("@; // NOLINT(cudalint-bank-conflict)").0, [0; 0]);
    assert_eq!(applied("@; // NOLINT").0, [1]);
    assert_eq!(applied("@; // NOLINT(readability-x)"), (vec![1], vec![], vec![]));
    assert_eq!(applied("// NOLINTNEXTLINE(cudalint-*)\n@;\n@;").0, [3]);
    assert_eq!(
        applied("// NOLINTBEGIN(cudalint-bank-conflict)\n@;\n// NOLINTEND(cudalint-bank-conflict)\n@;").0,
        [4]
    );
}

#[test]
fn what_silences_nothing_is_reported_and_removed() {
    let fixed = |text: &str| {
        let (sources, applied) = run(text);
        let mut text = sources.get(FileId(0)).text.clone();
        let mut edits: Vec<Edit> =
            applied.unused.iter().filter_map(|f| f.fix.clone()).flat_map(|f| f.edits).collect();
        edits.sort();
        for edit in edits.iter().rev() {
            text.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
        }
        text
    };
    assert_eq!(
        applied("a; // cudalint: allow(bank-conflict)").2,
        ["allow of `bank-conflict` silences nothing"]
    );
    assert_eq!(applied("? // cudalint: allow(bank-conflict)").2, [""; 0]);
    assert_eq!(applied("?\n// cudalint: allow(bank-conflict)\nb;").2.len(), 1);
    assert_eq!(applied("@; // cudalint: allow(bank-conflit)").2, ["unknown rule or category `bank-conflit`"]);
    assert_eq!(applied("// cudalint: allow-begin(all)\n@;\n").2, ["this block of allow is never closed"]);
    assert_eq!(fixed("a; // cudalint: allow(bank-conflict)\nb;"), "a;\nb;");
    assert_eq!(fixed("a;\n  // cudalint: allow(bank)\r\nb;"), "a;\nb;");
    assert_eq!(fixed("a\n// cudalint: allow-begin(all)\nb\n// cudalint: allow-end(all)\nc"), "a\nb\nc");
    assert_eq!(
        fixed("@; // cudalint: allow(bank-conflict, bank, all)"),
        "@; // cudalint: allow(bank-conflict, bank, all)"
    );
    assert_eq!(
        fixed("a; // NOLINT(cudalint-bank-conflict, x-y)"),
        "a; // NOLINT(cudalint-bank-conflict, x-y)"
    );
}

#[test]
fn inserted_comments_silence_what_they_were_made_for() {
    let added = |text: &str| {
        let (sources, applied) = run(text);
        let edits = insertions(&sources, &applied.kept, "later");
        let mut text = text.to_owned();
        for edit in edits.iter().rev() {
            text.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
        }
        assert_eq!(super::tests::applied(&text).0, [0; 0], "{text}");
        text
    };
    assert_eq!(added("a;\n  @; @;\n"), "a;\n  // cudalint: allow(bank-conflict) later\n  @; @;\n");
    assert_eq!(
        added("#define M(a) \\\n  @; \\\n  b\n"),
        "#define M(a) \\\n  @; /* cudalint: allow(bank-conflict) later */ \\\n  b\n"
    );
}

#[test]
fn what_was_meant_as_a_comment_to_us_is_told() {
    let said = |text: &str| applied(text).2;
    let help = |text: &str| run(text).1.unused.into_iter().filter_map(|f| f.help).collect::<Vec<_>>();
    assert_eq!(said("@; // cudalint: allow"), ["this comment names no rule"]);
    assert_eq!(said("@; // cudalint: allow()"), ["this comment names no rule"]);
    assert_eq!(help("// cudalint: begin-allow(all)\n@;"), ["did you mean `allow-begin`?"]);
    assert_eq!(help("@; // CUDALINT: ALLOW(all)"), ["did you mean `allow`?"]);
    assert_eq!(
        help("@; // cudalint: ignore(all)"),
        ["one of allow-begin, allow-end, allow-file, allow, launch"]
    );
    assert_eq!(
        said("@;\n// cudalint: allow-end(all)\n"),
        ["no open block with these words stands before this end"]
    );
    assert_eq!(
        said("// cudalint: launch(block = 32)\n// see cudalint: the tool\n// a cudalint run\n"),
        [""; 0]
    );
}

#[test]
fn blocks_of_other_tools_are_left_alone() {
    let text = "// cudalint: allow-begin(all)\n@;\n// NOLINTEND(bugprone-x)\n@;\n// cudalint: allow-end\n";
    assert_eq!(applied(text), (vec![], vec![String::new(); 2], vec![]));
}

#[test]
fn a_byte_order_mark_stays_first() {
    let (sources, found) = run("\u{feff}@;\n");
    let edits = insertions(&sources, &found.kept, "");
    assert_eq!(
        (edits[0].span.start, edits[0].replacement.as_str()),
        (3, "// cudalint: allow(bank-conflict)\n")
    );
}
