//! Documents are executed: every ```cuda fence of `rules/*/README.md` and every `fixtures/kernels/**/*.cu`.
//!
//! ```text
//! //~ rule: text         a finding of the rule on this line, whose message contains the text
//! //~ MISS rule: why     one that should be there and is not: counted
//! //~ FALSE rule: why    one that is there and should not be: counted
//! ```
//!
//! Several marks may stand on a line. A line without marks asserts silence: of all default rules, and in a room of the
//! room's own. Under `## What it finds` a ```text fence is what `cudalint` prints for the fence above it.
//! `BLESS=1` rewrites those and the table of rules/README.md, never a mark.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cudalint::lint::check::{Input, check};
use cudalint::lint::finding::{Finding, Level};
use cudalint::report::{self, Format, Report, Summary, text::Style};
use cudalint::rules::ALL;
use cudalint::source::{SourceFile, Sources};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Finding,
    Miss,
    False,
}

#[derive(Clone, Debug)]
struct Mark {
    line: u32,
    kind: Kind,
    rule: String,
    text: String,
}

fn marks(source: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (line, text) in (1..).zip(source.lines()) {
        for mark in text.split("//~").skip(1) {
            let mark = mark.trim();
            let (kind, mark) = match mark.split_once(' ') {
                Some(("MISS", rest)) => (Kind::Miss, rest),
                Some(("FALSE", rest)) => (Kind::False, rest),
                _ => (Kind::Finding, mark),
            };
            let (rule, text) = mark.split_once(':').unwrap_or((mark, ""));
            let (rule, text) = (rule.trim().to_owned(), text.trim().to_owned());
            marks.push(Mark { line, kind, rule, text });
        }
    }
    marks
}

/// Marks as a reader of the rendering sees the code: without them.
fn unmarked(source: &str) -> String {
    let strip = |line: &str| line.split("//~").next().unwrap_or("").trim_end().to_owned();
    source.lines().map(strip).collect::<Vec<_>>().join("\n") + "\n"
}

/// The findings of one file that is a whole project, with its sources.
fn findings(name: &str, source: &str, own: Option<&str>) -> (Sources, Vec<Finding>) {
    findings_of(&[(name.to_owned(), source.to_owned())], own)
}

/// The findings of a project, with its sources.
fn findings_of(files: &[(String, String)], own: Option<&str>) -> (Sources, Vec<Finding>) {
    let mut input = Input::default();
    for (name, source) in files {
        let file = input.sources.add(SourceFile::new(name, source.clone()));
        input.checked.push(file);
    }
    let named: Vec<Mark> = files.iter().flat_map(|(_, source)| marks(source)).collect();
    let wanted = |finding: &Finding| {
        let rule = finding.rule.name;
        finding.level != Level::Off || own == Some(rule) || named.iter().any(|mark| mark.rule == rule)
    };
    let mut found: Vec<Finding> = check(&input, ALL).findings.into_iter().filter(wanted).collect();
    found.sort_by_cached_key(|finding| (finding.span, finding.rule.name, finding.message.clone()));
    found
        .iter_mut()
        .filter(|finding| finding.level == Level::Off)
        .for_each(|finding| finding.level = Level::Note);
    (input.sources, found)
}

/// What differs between marks and findings, a line each.
fn compare(name: &str, source: &str, own: Option<&str>, counted: &mut BTreeMap<String, u32>) -> Vec<String> {
    let (sources, found) = findings(name, source, own);
    compare_with(name, source, &sources, found, counted)
}

/// The same for one file of a project with its findings.
fn compare_with(
    name: &str,
    source: &str,
    sources: &Sources,
    mut found: Vec<Finding>,
    counted: &mut BTreeMap<String, u32>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for mark in marks(source) {
        let Mark { line, kind, rule, text } = &mark;
        if !ALL.iter().any(|known| known.info().name == rule) {
            wrong.push(format!("{name}:{line}: no rule is called `{rule}`"));
            continue;
        }
        let fits = |finding: &Finding| {
            sources.line(finding.span) == *line
                && finding.rule.name == rule
                && (*kind != Kind::Finding || finding.message.contains(text))
        };
        let place = found.iter().position(fits);
        match (kind, place) {
            (Kind::Finding | Kind::False, Some(place)) => drop(found.remove(place)),
            (Kind::Finding | Kind::False, None) => wrong.push(format!("{name}:{line}: no {rule}: {text}")),
            (Kind::Miss, None) => {}
            (Kind::Miss, Some(_)) => wrong.push(format!("{name}:{line}: no longer a MISS of {rule}")),
        }
        if *kind != Kind::Finding {
            *counted.entry(format!("{kind:?} {rule}")).or_default() += 1;
        }
    }
    for finding in found {
        let line = sources.line(finding.span);
        wrong.push(format!("{name}:{line}: unexpected {}: {}", finding.rule.name, finding.message));
    }
    wrong
}

fn rendering(name: &str, source: &str, own: &str) -> String {
    let (sources, mut found) = findings(name, &unmarked(source), Some(own));
    found.retain(|finding| finding.rule.name == own);
    let infos: Vec<_> = ALL.iter().map(|rule| rule.info()).collect();
    let report = Report {
        sources: &sources,
        findings: &found,
        suppressed: &[],
        gaps: &[],
        rules: &infos,
        working_dir: Path::new("/"),
        root: Path::new("/"),
        summary: Summary::default(),
        category: None,
        sarif_max_level: Level::Error,
    };
    report::render(&report, Format::Full, &Style::PLAIN)
}

struct Fence {
    language: String,
    section: String,
    text: String,
    /// Bytes of the text in the document.
    range: std::ops::Range<usize>,
    line: usize,
}

fn fences(document: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let (mut section, mut open, mut at) = (String::new(), None::<(String, usize, usize)>, 0);
    for (number, line) in document.split_inclusive('\n').enumerate() {
        let trimmed = line.trim_end();
        match (&open, trimmed.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), at + line.len(), number + 2)),
            (Some((language, start, first)), Some("")) => {
                let (language, range, line) = (language.clone(), *start..at, *first);
                let text = document.get(range.clone()).unwrap_or("").to_owned();
                fences.push(Fence { language, section: section.clone(), text, range, line });
                open = None;
            }
            (None, None) if trimmed.starts_with("## ") => section = trimmed.to_owned(),
            _ => {}
        }
        at += line.len();
    }
    fences
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn room(rule: &str) -> PathBuf {
    root().join("rules").join(rule.replace('-', "_")).join("README.md")
}

#[test]
fn the_examples_of_every_room_fire_exactly_as_marked() {
    let (mut wrong, mut counted) = (Vec::new(), BTreeMap::new());
    for rule in ALL {
        let rule = rule.info().name;
        let document = std::fs::read_to_string(room(rule)).unwrap();
        let fences = fences(&document);
        let cuda = fences.iter().filter(|fence| fence.language == "cuda");
        for fence in cuda.clone() {
            // Line numbers of the README itself.
            let name = format!("rules/{}/README.md fence at line {}", rule.replace('-', "_"), fence.line);
            wrong.extend(compare(&name, &fence.text, Some(rule), &mut counted));
        }
        if !cuda.clone().any(|fence| marks(&fence.text).iter().any(|mark| mark.rule == rule)) {
            wrong.push(format!("{rule}: no example fires"));
        }
    }
    println!("known wrong: {counted:?}");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_renderings_of_every_room_are_what_is_printed() {
    for rule in ALL {
        let rule = rule.info().name;
        let mut document = std::fs::read_to_string(room(rule)).unwrap();
        let fences = fences(&document);
        let pairs = fences.iter().zip(fences.iter().skip(1));
        let shown: Vec<_> = pairs
            .filter(|(code, text)| {
                code.language == "cuda" && text.language == "text" && text.section == "## What it finds"
            })
            .collect();
        for (code, text) in shown.into_iter().rev() {
            let now = rendering("example.cu", &code.text, rule);
            let now: String = now.trim_end().lines().map(|line| format!("{}\n", line.trim_end())).collect();
            if blessing() {
                document.replace_range(text.range.clone(), &now);
            } else {
                assert_eq!(text.text, now, "{rule}: BLESS=1 rewrites");
            }
        }
        if blessing() {
            std::fs::write(room(rule), document).unwrap();
        }
    }
}

fn cuda_files(directory: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            cuda_files(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            out.push(path);
        }
    }
    out.sort();
}

#[test]
fn every_line_of_the_kernels_says_what_is_marked() {
    let mut files = Vec::new();
    cuda_files(&root().join("fixtures/kernels"), &mut files);
    assert!(!files.is_empty());
    let (mut wrong, mut counted) = (Vec::new(), BTreeMap::new());
    for path in files {
        let source = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
        wrong.extend(compare(&name, &source, None, &mut counted));
    }
    println!("known wrong: {counted:?}");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_header_is_what_its_includers_make_of_it() {
    let directory = root().join("fixtures/projects/views");
    let names = ["cells.h", "compact.cu", "default.cu"];
    let read = |name: &str| (name.to_owned(), std::fs::read_to_string(directory.join(name)).unwrap());
    let files = names.map(read);
    let (sources, found) = findings_of(&files, None);
    let (mut wrong, mut counted) = (Vec::new(), BTreeMap::new());
    for (name, source) in &files {
        let own = |finding: &&Finding| sources.path(finding.span.file) == Path::new(name);
        let own: Vec<Finding> = found.iter().filter(own).cloned().collect();
        wrong.extend(compare_with(name, source, &sources, own, &mut counted));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let notes: Vec<&String> = found.iter().flat_map(|finding| &finding.notes).collect();
    let view = "the file is not the same for all who include it: 8 where 1 would do as `compact.cu`, 32 where 8 would \
                do as `default.cu` includes it";
    assert_eq!(notes.iter().filter(|note| note.as_str() == view).count(), 1, "{notes:?}");
}

#[test]
fn the_table_of_rules_is_up_to_date() {
    let mut table = String::from("| rule | level | finds |\n|---|---|---|\n");
    for rule in ALL {
        let info = rule.info();
        let room = info.name.replace('-', "_");
        let level = info.default_level;
        let _ = writeln!(table, "| [`{}`]({room}/README.md) | {level} | {} |", info.name, info.summary);
    }
    let path = root().join("rules/README.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once("<!-- table -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let now = format!("{before}<!-- table -->\n{table}<!-- end -->{after}");
    if blessing() {
        std::fs::write(path, now).unwrap();
    } else {
        assert_eq!(document, now, "BLESS=1 rewrites");
    }
}
