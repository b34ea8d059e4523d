//! `cudalint config` and `init`: what is configured, where it was said, and whether it is right.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::super::lint::config::{self, Document, FILE_NAMES};
use super::super::lint::finding::{Level, RuleInfo};
use super::Engine;
use super::args::{ConfigAction, ProjectArgs, SelectionArgs};
use super::failure::{self, Failure};
use super::settings::{Config, Configs};
use super::shell::Shell;

pub fn run(action: &ConfigAction, engine: &Engine, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    match action {
        ConfigAction::Show(args) => show(shell, &args.project, &args.selection, engine),
        ConfigAction::Check { files } => check(shell, files, engine),
        ConfigAction::Schema => {
            shell.stdout.write_all(config::schema().as_bytes())?;
            shell.stdout.flush()?;
            Ok(0)
        }
    }
}

/// Every value that holds for each path, with its origin, and the rules that run there.
fn show(
    shell: &mut Shell<'_>,
    project: &ProjectArgs,
    selection: &SelectionArgs,
    engine: &Engine,
) -> Result<u8, Failure> {
    let mut configs = Configs::new(shell, project, selection, &engine.infos())?;
    let here = [PathBuf::from(".")];
    let paths = if project.paths.is_empty() { &here[..] } else { &project.paths };
    let mut text = String::new();
    for path in paths {
        let absolute = shell.absolute(path);
        let config = configs.of(&absolute)?;
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "# {}", path.display());
        let mut lines = Lines::default();
        defaults(&mut lines);
        for document in &config.documents {
            lines.document(document);
        }
        lines.command_line(project, selection);
        lines.write(&mut text);
        rules(&mut text, &config, &absolute);
    }
    shell.stdout.write_all(text.as_bytes())?;
    shell.stdout.flush()?;
    Ok(0)
}

/// Keys in the order of their first mention, each with its values and where they were said.
#[derive(Default)]
struct Lines {
    order: Vec<String>,
    values: BTreeMap<String, Vec<(String, String)>>,
}

fn defaults(lines: &mut Lines) {
    let defaults = [
        ("edition", "\"2026\""),
        ("persona", "\"default\""),
        ("preview", "false"),
        ("min-confidence", "\"assumed\""),
        ("fail-on", "\"warn\""),
    ];
    for (key, value) in defaults {
        lines.set(key, value.to_owned(), "default".to_owned());
    }
}

impl Lines {
    fn set(&mut self, key: &str, value: String, origin: String) {
        self.values.remove(key);
        self.add(key, value, origin);
    }

    fn add(&mut self, key: &str, value: String, origin: String) {
        if !self.order.iter().any(|known| known == key) {
            self.order.push(key.to_owned());
        }
        self.values.entry(key.to_owned()).or_default().push((value, origin));
    }

    /// Lays a document on top, as [`Config`] does: lists are replaced, `extend-select`, `rules`, `kernel` and
    /// `overrides` add up.
    fn document(&mut self, document: &Document) {
        let Ok(root) = DeTable::parse(&document.text) else { return };
        let Some(table) = config::own_table(&document.name, root.get_ref()) else { return };
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(inner) if name == "rules" => {
                    for (rule, level) in inner {
                        let shown = shown(document, level.span());
                        let origin = document.origin(rule.span());
                        self.set(&format!("rules.{}", rule.get_ref()), shown, origin);
                    }
                }
                DeValue::Array(entries) if matches!(name, "kernel" | "overrides") => {
                    for entry in entries {
                        self.add(name, inline(document, entry.get_ref()), document.origin(entry.span()));
                    }
                }
                _ if name == "extend-select" => {
                    self.add(name, shown(document, value.span()), document.origin(key.span()));
                }
                _ if name == "$schema" => {}
                _ => self.set(name, shown(document, value.span()), document.origin(key.span())),
            }
        }
    }

    fn command_line(&mut self, project: &ProjectArgs, words: &SelectionArgs) {
        let lists: [(&str, &[String], bool); 5] = [
            ("select", &words.select, true),
            ("extend-select", &words.extend_select, false),
            ("ignore", &words.ignore, false),
            ("define", &project.define, false),
            ("exclude", &project.exclude, false),
        ];
        for (key, list, replaces) in lists.into_iter().filter(|(_, list, _)| !list.is_empty()) {
            let value = format!("{list:?}");
            match replaces {
                true => self.set(key, value, "command line".to_owned()),
                false => self.add(key, value, "command line".to_owned()),
            }
        }
        let persona =
            words.pedantic.then_some("Pedantic".to_owned()).or(words.persona.map(|name| format!("{name:?}")));
        let confidence = words.min_confidence.map(|name| format!("{name:?}"));
        let preview = words.preview.then_some("true".to_owned());
        for (key, value) in [("persona", persona), ("min-confidence", confidence)] {
            if let Some(value) = value {
                self.set(key, format!("\"{}\"", value.to_lowercase()), "command line".to_owned());
            }
        }
        if let Some(value) = preview {
            self.set("preview", value, "command line".to_owned());
        }
    }

    fn write(&self, out: &mut String) {
        let mut lines = Vec::new();
        for key in &self.order {
            for (value, origin) in self.values.get(key).into_iter().flatten() {
                lines.push((format!("{key} = {value}"), origin));
            }
        }
        let width =
            lines.iter().map(|(line, _)| line.chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
        for (line, origin) in lines {
            let _ = writeln!(out, "{line:width$}  # {origin}");
        }
    }
}

/// The text of a value on one line.
fn shown(document: &Document, span: std::ops::Range<usize>) -> String {
    let text = document.text.get(span).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A table on one line.
fn inline(document: &Document, value: &DeValue<'_>) -> String {
    let DeValue::Table(table) = value else { return String::new() };
    let mut fields: Vec<(usize, String)> = Vec::new();
    for (key, value) in table {
        let text = match value.get_ref() {
            DeValue::Table(_) => inline(document, value.get_ref()),
            _ => shown(document, value.span()),
        };
        fields.push((key.span().start, format!("{} = {text}", key.get_ref())));
    }
    fields.sort();
    let fields: Vec<String> = fields.into_iter().map(|(_, field)| field).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn rules(out: &mut String, config: &Config, path: &Path) {
    let levels = config.for_file(path).levels;
    let list: Vec<String> = levels.iter().map(|(rule, level)| format!("{rule} ({level})")).collect();
    if config.excludes(path) {
        let _ = writeln!(out, "# excluded: left out of directories, and with --force-exclude");
    }
    let _ = writeln!(out, "# rules: {}", if list.is_empty() { "none".to_owned() } else { list.join(", ") });
}

/// Reads configuration files as a check would; all errors are shown.
fn check(shell: &mut Shell<'_>, files: &[PathBuf], engine: &Engine) -> Result<u8, Failure> {
    let mut files: Vec<PathBuf> = files.iter().map(|file| shell.absolute(file)).collect();
    if files.is_empty() {
        let project = ProjectArgs::default();
        let mut configs = Configs::new(shell, &project, &SelectionArgs::default(), &engine.infos())?;
        let cwd = shell.cwd.clone();
        files.extend(configs.nearest(&cwd));
    }
    let mut code = 0;
    for file in files {
        let name = file.to_string_lossy().into_owned();
        let project = ProjectArgs { config: vec![name], ..ProjectArgs::default() };
        let words = SelectionArgs::default();
        let checked = Configs::new(shell, &project, &words, &engine.infos())
            .and_then(|mut configs| configs.of(&file).map(|_| ()));
        if let Err(failure) = checked {
            shell.stderr.write_all(failure::render(&failure).as_bytes())?;
            code = 2;
        }
    }
    Ok(code)
}

/// Writes a first `cudalint.toml`.
pub fn init(shell: &mut Shell<'_>, engine: &Engine) -> Result<u8, Failure> {
    if let Some(name) = FILE_NAMES.iter().find(|name| shell.cwd.join(name).exists()) {
        return Err(Failure::Usage(format!("{name} exists already")));
    }
    let [name, _] = FILE_NAMES;
    std::fs::write(shell.cwd.join(name), first_file(&engine.infos()))
        .map_err(|error| Failure::Usage(format!("cannot write {name}: {error}")))?;
    writeln!(shell.stderr, "wrote {name}")?;
    Ok(0)
}

fn first_file(rules: &[&'static RuleInfo]) -> String {
    let mut text = String::new();
    let repository = env!("CARGO_PKG_REPOSITORY").trim_end_matches('/');
    if !repository.is_empty() {
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(text, "#:schema {repository}/raw/v{version}/src/lint/cudalint.schema.json\n");
    }
    text.push_str(
        "# The set of rules that run by default; upgrades of cudalint do not change it.\nedition = \"2026\"\n\n\
         # Files that are not checked.\n# exclude = [\"third_party/\"]\n\n\
         # What the code is compiled with.\n# define = [\"TILE=32\"]\n# include-dirs = [\"include\"]\n\n\
         # Launches that are not in the project.\n# [[kernel]]\n# name = \"reduce*\"\n# block = 256\n\n\
         # What is different in some places.\n# [[overrides]]\n# paths = [\"tests/\"]\n# ignore = [\"all\"]\n\n\
         # Levels: off, note, warn, error.\n[rules]\n",
    );
    for rule in rules {
        let level = match rule.default_level {
            Level::Warning => "warn".to_owned(),
            level => level.to_string(),
        };
        let _ = writeln!(text, "# {} = \"{level}\"", rule.name);
    }
    text
}
