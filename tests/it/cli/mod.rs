//! The command line over a made-up analysis: words in the source stand for findings, so that these tests are about
//! files, settings and exit codes and nothing else.

mod allow;
mod check;
mod config;
mod fix;
mod known;

use std::ffi::OsString;

use cudalint::cli::{Engine, run, shell::Shell};
use cudalint::ir::ast::Gap;
use cudalint::ir::facts::Confidence;
use cudalint::lint::check::{Checked, Input};
use cudalint::lint::finding::{Applicability, Category, Finding, Fix, Level, Numbers, RuleInfo};
use cudalint::lint::rule::{Context, Rule};
use cudalint::source::{Edit, FileId, SourceFile, Span};

/// A rule that finds a word. `fix` is what the word becomes.
struct Word {
    info: RuleInfo,
    word: &'static str,
    fix: Option<(&'static str, Applicability)>,
    confidence: Confidence,
}

impl Rule for Word {
    fn info(&self) -> &'static RuleInfo {
        RULES.iter().map(|rule| &rule.info).find(|info| info.name == self.info.name).unwrap()
    }

    fn check(&self, _cx: &Context, _out: &mut Vec<Finding>) {}
}

const fn info(name: &'static str, category: Category, default_level: Level) -> RuleInfo {
    RuleInfo {
        name,
        summary: "a made-up rule",
        category,
        default_level,
        since: "0.1.0",
        measured: None,
        doc: "# made up\n\nWords.\n",
    }
}

static RULES: [Word; 5] = [
    Word {
        info: info("uncoalesced-access", Category::Coalescing, Level::Warning),
        word: "STRIDED",
        fix: None,
        confidence: Confidence::Shaped,
    },
    Word {
        info: info("bank-conflict", Category::Bank, Level::Warning),
        word: "CONFLICT",
        fix: Some(("PADDED", Applicability::Unsafe)),
        confidence: Confidence::Proven,
    },
    Word {
        info: info("missing-restrict", Category::Alias, Level::Warning),
        word: "PLAIN",
        fix: Some(("RESTRICT", Applicability::Safe)),
        confidence: Confidence::Proven,
    },
    Word {
        info: info("misaligned-access", Category::Coalescing, Level::Off),
        word: "OFFSET",
        fix: None,
        confidence: Confidence::Assumed,
    },
    Word {
        info: info("spoiling-fix", Category::Cache, Level::Warning),
        word: "SPOILS",
        fix: Some(("STRIDED", Applicability::Safe)),
        confidence: Confidence::Proven,
    },
];

static ALL: [&dyn Rule; 5] = [&RULES[0], &RULES[1], &RULES[2], &RULES[3], &RULES[4]];

/// Finds the words; `BROKEN` is a gap, and a finding's number is how many files the analysis was given.
fn check(input: &Input, rules: &[&'static dyn Rule]) -> Checked {
    let mut checked = Checked::default();
    for file in input.checked.iter().copied() {
        let source = input.sources.get(file);
        checked.kernels += source.text.matches("__global__").count();
        let gap = |(at, word): (usize, &str)| Gap {
            span: Span::new(file, at, at + word.len()),
            reason: "not understood".into(),
        };
        checked.gaps.extend(source.text.match_indices("BROKEN").map(gap));
        for rule in RULES.iter().filter(|word| rules.iter().any(|rule| rule.info().name == word.info.name)) {
            let found = source.text.match_indices(rule.word);
            checked.findings.extend(found.map(|(at, _)| finding(input, file, source, rule, at)));
        }
    }
    checked
}

fn finding(input: &Input, file: FileId, source: &SourceFile, rule: &Word, at: usize) -> Finding {
    let span = Span::new(file, at, at + rule.word.len());
    let before = &source.text[..at];
    let kernel = before.rfind("void ").map_or("", |start| &before[start + 5..]);
    let line = source.line_range(source.line(at as u32));
    Finding {
        rule: rule.info(),
        level: rule.info.default_level,
        span,
        message: format!("{} among {} files", rule.word, input.sources.len()),
        label: String::new(),
        notes: Vec::new(),
        help: None,
        trail: Vec::new(),
        kernel: kernel.split('(').next().unwrap_or("").to_owned(),
        access_text: source.text[line].split("//").next().unwrap_or("").trim().to_owned(),
        numbers: Numbers { confidence: Some(rule.confidence), ..Numbers::default() },
        fix: rule.fix.map(|(word, applicability)| Fix {
            title: format!("write {word}"),
            applicability,
            edits: vec![Edit { span, replacement: word.to_owned() }],
        }),
    }
}

/// A directory with files, and the program run in it.
pub struct World {
    pub dir: tempfile::TempDir,
}

pub struct Ran {
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl World {
    /// `files` are paths with texts.
    pub fn new(files: &[(&str, &str)]) -> World {
        let world = World { dir: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| world.write(path, text));
        world
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.dir.path().join(path)).unwrap()).unwrap()
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_in("", "", args)
    }

    pub fn run_in(&self, directory: &str, stdin: &str, args: &[&str]) -> Ran {
        self.run_with(&Engine { rules: &ALL, check, inspect: |_| Vec::new() }, directory, stdin, args)
    }

    /// With the real rules.
    pub fn run_real(&self, args: &[&str]) -> Ran {
        self.run_with(&Engine::real(), "", "", args)
    }

    fn run_with(&self, engine: &Engine, directory: &str, stdin: &str, args: &[&str]) -> Ran {
        let cwd = self.dir.path().join(directory).canonicalize().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut shell = Shell {
            cwd,
            stdin: &mut stdin.as_bytes(),
            stdout: &mut out,
            stderr: &mut err,
            terminal: false,
            progress: false,
            variable: |_| None,
        };
        let args = std::iter::once("cudalint").chain(args.iter().copied()).map(OsString::from);
        let code = run(args, engine, &mut shell);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code, out: text(out), err: text(err) }
    }

    pub fn git(&self, args: &[&str]) {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
            .args(["-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Ran {
    /// `path:line rule` of each finding in the concise format, in order.
    pub fn found(&self) -> Vec<String> {
        let place = |line: &str| {
            let (place, rest) = line.split_once(": ")?;
            let rule = rest.split_once('[')?.1.split_once(']')?.0;
            let (place, _column) = place.rsplit_once(':')?;
            Some(format!("{place} {rule}"))
        };
        self.out.lines().filter_map(place).collect()
    }
}
