//! `cudalint.toml`: what it may say, and how its errors point at what is wrong. Finding and reading the files is
//! done in `cli/`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::ir::facts::Confidence;
use super::finding::Level;
use super::selection::{self, closest};

/// The names a configuration file has, in order of preference.
pub const FILE_NAMES: [&str; 2] = ["cudalint.toml", ".cudalint.toml"];

/// May hold a configuration too, in its table `[tool.cudalint]`.
pub const PYPROJECT: &str = "pyproject.toml";

/// What of a `pyproject.toml` is ours.
#[derive(Deserialize)]
struct PyProject {
    tool: Option<PyTool>,
}

#[derive(Deserialize)]
struct PyTool {
    cudalint: Option<ConfigFile>,
}

/// A configuration file of cudalint. Paths and globs are relative to the file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(title = "cudalint.toml")]
pub struct ConfigFile {
    /// For editors; not read.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// A configuration file to start from; what stands here wins.
    #[schemars(with = "Option<String>")]
    pub extend: Option<Spanned<String>>,
    /// This directory is the project: files above it are not read.
    #[schemars(with = "Option<bool>")]
    pub root: Option<Spanned<bool>>,
    /// Freezes the default set of rules, so that an upgrade brings no new findings. Default: "2026".
    #[schemars(with = "Option<EditionName>")]
    pub edition: Option<Spanned<EditionName>>,
    /// "default", or "pedantic" to also see what costs little or may be meant. Default: "default".
    #[schemars(with = "Option<PersonaName>")]
    pub persona: Option<Spanned<PersonaName>>,
    /// Also run rules that are newer than the edition. Default: false.
    #[schemars(with = "Option<bool>")]
    pub preview: Option<Spanned<bool>>,
    /// The rules, categories or "all" that run, instead of the default set.
    #[schemars(with = "Option<Vec<String>>")]
    pub select: Option<Vec<Spanned<String>>>,
    /// Rules, categories or "all" that run beside the others.
    #[schemars(with = "Option<Vec<String>>")]
    pub extend_select: Option<Vec<Spanned<String>>>,
    /// Rules, categories or "all" that do not run.
    #[schemars(with = "Option<Vec<String>>")]
    pub ignore: Option<Vec<Spanned<String>>>,
    /// The least sure finding to report: "proven", "shaped" or "assumed". Default: "assumed".
    #[schemars(with = "Option<ConfidenceName>")]
    pub min_confidence: Option<Spanned<ConfidenceName>>,
    /// The level from which a finding fails the run: "note", "warn", "error" or "never". Default: "warn".
    #[schemars(with = "Option<FailOn>")]
    pub fail_on: Option<Spanned<FailOn>>,
    /// The level of each rule; a level other than "off" also selects the rule.
    #[schemars(with = "Option<BTreeMap<String, LevelName>>")]
    pub rules: Option<BTreeMap<Spanned<String>, Spanned<LevelName>>>,
    /// Macros the code is read with: `NAME` or `NAME=VALUE`.
    #[schemars(with = "Option<Vec<String>>")]
    pub define: Option<Vec<Spanned<String>>>,
    /// Directories in which `#include "…"` is also looked for.
    #[schemars(with = "Option<Vec<String>>")]
    pub include_dirs: Option<Vec<Spanned<String>>>,
    /// Macros that mark a kernel as `__global__` does.
    #[schemars(with = "Option<Vec<String>>")]
    pub kernel_macros: Option<Vec<Spanned<String>>>,
    /// Globs of files that are not checked.
    #[schemars(with = "Option<Vec<String>>")]
    pub exclude: Option<Vec<Spanned<String>>>,
    /// A file of accepted findings.
    #[schemars(with = "Option<String>")]
    pub baseline: Option<Spanned<String>>,
    /// Launch shapes of kernels whose launches are not in the project.
    pub kernel: Option<Vec<KernelEntry>>,
    /// What `cudalint verify` launches kernels with.
    pub verify: Option<VerifySection>,
    /// What is different for some paths; later entries win.
    pub overrides: Option<Vec<Override>>,
}

/// What `cudalint verify` launches kernels with.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VerifySection {
    /// Inputs of kernels; the first entry whose name fits counts.
    pub kernel: Option<Vec<VerifyKernel>>,
}

/// Inputs of the kernels whose name matches a glob; what is left out is made up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VerifyKernel {
    /// A glob over kernel names: "reduce*".
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Threads per block: 256, [16, 16] or "16x16".
    #[schemars(with = "Option<Extents>")]
    pub block: Option<Spanned<Extents>>,
    /// Blocks per grid, in the same forms.
    #[schemars(with = "Option<Extents>")]
    pub grid: Option<Spanned<Extents>>,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: Option<u32>,
    /// Scalar arguments by the parameter's name.
    pub args: Option<BTreeMap<String, f64>>,
    /// Bytes of buffers by the parameter's name.
    pub sizes: Option<BTreeMap<String, u64>>,
}

/// The launch shape of the kernels whose name matches a glob.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KernelEntry {
    /// A glob over kernel names: "reduce*".
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Threads per block: 256, [16, 16] or "16x16".
    #[schemars(with = "Extents")]
    pub block: Spanned<Extents>,
    /// Blocks per grid, in the same forms.
    #[schemars(with = "Option<Extents>")]
    pub grid: Option<Spanned<Extents>>,
}

/// What is different for the files that match one of `paths`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Override {
    /// Globs of files.
    #[schemars(with = "Vec<String>")]
    pub paths: Vec<Spanned<String>>,
    /// As at the top.
    #[schemars(with = "Option<Vec<String>>")]
    pub select: Option<Vec<Spanned<String>>>,
    /// As at the top.
    #[schemars(with = "Option<Vec<String>>")]
    pub extend_select: Option<Vec<Spanned<String>>>,
    /// As at the top.
    #[schemars(with = "Option<Vec<String>>")]
    pub ignore: Option<Vec<Spanned<String>>>,
    /// As at the top.
    #[schemars(with = "Option<ConfidenceName>")]
    pub min_confidence: Option<Spanned<ConfidenceName>>,
    /// As at the top.
    #[schemars(with = "Option<BTreeMap<String, LevelName>>")]
    pub rules: Option<BTreeMap<Spanned<String>, Spanned<LevelName>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum EditionName {
    #[serde(rename = "2026")]
    E2026,
}

impl From<EditionName> for selection::Edition {
    fn from(name: EditionName) -> Self {
        match name {
            EditionName::E2026 => selection::Edition::E2026,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PersonaName {
    Default,
    Pedantic,
}

impl From<PersonaName> for selection::Persona {
    fn from(name: PersonaName) -> Self {
        match name {
            PersonaName::Default => selection::Persona::Default,
            PersonaName::Pedantic => selection::Persona::Pedantic,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ConfidenceName {
    Proven,
    Shaped,
    Assumed,
}

impl From<ConfidenceName> for Confidence {
    fn from(name: ConfidenceName) -> Self {
        match name {
            ConfidenceName::Proven => Confidence::Proven,
            ConfidenceName::Shaped => Confidence::Shaped,
            ConfidenceName::Assumed => Confidence::Assumed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelName {
    Off,
    Note,
    #[serde(alias = "warning")]
    Warn,
    Error,
}

impl From<LevelName> for Level {
    fn from(name: LevelName) -> Self {
        match name {
            LevelName::Off => Level::Off,
            LevelName::Note => Level::Note,
            LevelName::Warn => Level::Warning,
            LevelName::Error => Level::Error,
        }
    }
}

/// The level from which a finding fails the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FailOn {
    Note,
    #[serde(alias = "warning")]
    #[value(alias = "warning")]
    Warn,
    Error,
    Never,
}

impl FailOn {
    pub fn fails(self, level: Level) -> bool {
        match self {
            FailOn::Never => false,
            FailOn::Note => level >= Level::Note,
            FailOn::Warn => level >= Level::Warning,
            FailOn::Error => level >= Level::Error,
        }
    }
}

/// Extents of a block or a grid in x, y, z.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected extents such as 256, [16, 16] or \"16x16\"")]
pub enum Extents {
    Line(u64),
    List(Vec<u64>),
    Text(String),
}

impl Extents {
    /// Missing extents are 1; none, more than three, or a zero is an error.
    pub fn resolve(&self) -> Option<[u64; 3]> {
        let given: Vec<u64> = match self {
            Extents::Line(x) => vec![*x],
            Extents::List(list) => list.clone(),
            Extents::Text(text) => {
                text.split('x').map(|part| part.trim().parse().ok()).collect::<Option<Vec<u64>>>()?
            }
        };
        if given.is_empty() || given.len() > 3 || given.contains(&0) {
            return None;
        }
        let mut extents = [1; 3];
        extents.iter_mut().zip(given).for_each(|(slot, value)| *slot = value);
        Some(extents)
    }

    /// A block that a device can run: at most 1024 threads, at most 64 of them in z
    /// (CUDA C++ programming guide, technical specifications per compute capability).
    pub fn resolve_block(&self) -> Option<[u32; 3]> {
        let [x, y, z] = self.resolve()?;
        let threads = x.checked_mul(y)?.checked_mul(z)?;
        (threads <= 1024 && z <= 64).then_some([x as u32, y as u32, z as u32])
    }
}

/// Something wrong in the configuration, with the place and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    pub message: String,
    /// `None` where no file is at fault.
    pub at: Option<ErrorPlace>,
    pub help: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPlace {
    /// As reports print it; `--config` for an inline value.
    pub file: PathBuf,
    pub text: String,
    /// Bytes of `text`; empty where the whole file is meant.
    pub span: Range<usize>,
}

impl ConfigError {
    pub fn new(message: impl Into<String>) -> Self {
        ConfigError { message: message.into(), at: None, help: None }
    }

    pub fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }
}

/// A configuration text that was read: a file, or `--config`.
#[derive(Clone, Debug)]
pub struct Document {
    /// As reports print it.
    pub name: PathBuf,
    /// What its paths and globs are relative to.
    pub directory: PathBuf,
    pub text: String,
    pub config: ConfigFile,
}

impl Document {
    pub fn parse(name: &Path, directory: &Path, text: &str) -> Result<Document, ConfigError> {
        let read = match is_pyproject(name) {
            true => toml::from_str::<PyProject>(text)
                .map(|file| file.tool.and_then(|tool| tool.cudalint).unwrap_or_default()),
            false => toml::from_str::<ConfigFile>(text),
        };
        match read {
            Ok(config) => {
                let (name, directory) = (name.to_owned(), directory.to_owned());
                Ok(Document { name, directory, text: text.to_owned(), config })
            }
            Err(error) => Err(explain(name, text, &error)),
        }
    }

    /// An error at one of this document's values.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        let at = ErrorPlace { file: self.name.clone(), text: self.text.clone(), span };
        ConfigError { message: message.into(), at: Some(at), help: None }
    }

    /// `cudalint.toml:3`; just the name for `--config`.
    pub fn origin(&self, span: Range<usize>) -> String {
        let name = self.name.display();
        if self.name.as_os_str() == "--config" {
            return name.to_string();
        }
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        format!("{name}:{}", before.iter().filter(|byte| **byte == b'\n').count() + 1)
    }
}

/// Whether a file is one of Python's, of which only a part is ours.
pub fn is_pyproject(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == PYPROJECT)
}

/// The tables of a document that hold our keys: the whole, or `[tool.cudalint]` of a `pyproject.toml`.
pub fn own_table<'a>(name: &Path, root: &'a DeTable<'a>) -> Option<&'a DeTable<'a>> {
    let inside = |table: &'a DeTable<'a>, key: &str| match table.get(key)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    };
    if is_pyproject(name) { inside(inside(root, "tool")?, "cudalint") } else { Some(root) }
}

/// Turns the parser's error into ours, with the key that was probably meant.
fn explain(name: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let span = error.span().unwrap_or(0..0);
    let word = text.get(span.clone()).unwrap_or_default().trim_matches(['"', '\'']).to_owned();
    let original = error.message();
    // serde lists what it expected between backticks, after "expected".
    let (head, expected) = original.split_once("expected").unwrap_or((original, ""));
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let message = match head {
        head if head.starts_with("unknown field") => format!("unknown key `{word}`"),
        head if head.starts_with("unknown variant") => format!("unknown value `{word}`"),
        head if head.starts_with("wanted string") => format!("`{word}` is no word in quotes"),
        _ => original.lines().next().unwrap_or("not valid TOML").to_owned(),
    };
    let is_list = original.ends_with("expected a sequence");
    let known = if head.starts_with("unknown") { known } else { Vec::new() };
    let help = match closest(&word, known.iter().copied()) {
        _ if is_list => Some(format!("write a list: `[\"{word}\"]`")),
        Some(meant) => Some(format!("did you mean `{meant}`?")),
        None if known.is_empty() => None,
        None => Some(format!("one of {}", known.join(", "))),
    };
    let at = ErrorPlace { file: name.to_owned(), text: text.to_owned(), span };
    ConfigError { message, at: Some(at), help }
}

/// The JSON schema of `cudalint.toml`, for editors.
pub fn schema() -> String {
    let schema = schemars::schema_for!(ConfigFile);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Document, ConfigError> {
        Document::parse(Path::new("cudalint.toml"), Path::new(""), text)
    }

    fn error(text: &str) -> (String, String, Option<String>) {
        let error = parse(text).unwrap_err();
        let at = error.at.unwrap();
        (error.message, at.text[at.span].to_owned(), error.help)
    }

    #[test]
    fn every_key_is_read() {
        let document = parse(
            "extend = \"a.toml\"\nroot = true\nedition = \"2026\"\npersona = \"pedantic\"\nselect = [\"all\"]\n\
             define = [\"N=4\"]\n[rules]\nbank-conflict = \"error\"\n[[kernel]]\nname = \"k*\"\nblock = \"16x16\"\n\
             [[overrides]]\npaths = [\"t/**\"]\nignore = [\"all\"]\n",
        )
        .unwrap();
        let config = &document.config;
        assert_eq!(*config.kernel.as_ref().unwrap()[0].block.as_ref(), Extents::Text("16x16".into()));
        let (rule, level) = config.rules.as_ref().unwrap().first_key_value().unwrap();
        assert_eq!((rule.as_ref().as_str(), *level.as_ref()), ("bank-conflict", LevelName::Error));
        assert_eq!(document.origin(rule.span()), "cudalint.toml:8");
    }

    #[test]
    fn errors_point_at_the_word_and_suggest() {
        let (message, at, help) = error("root = true\nselct = []\n");
        assert_eq!(message, "unknown key `selct`");
        assert_eq!((at.as_str(), help.as_deref()), ("selct", Some("did you mean `select`?")));
        let (message, at, help) = error("persona = \"pedant\"\n");
        assert_eq!(message, "unknown value `pedant`");
        assert_eq!((at.as_str(), help.as_deref()), ("\"pedant\"", Some("did you mean `pedantic`?")));
        let (message, at, _) = error("[[kernel]]\nname = \"k\"\nblock = true\n");
        assert_eq!(message, "expected extents such as 256, [16, 16] or \"16x16\"");
        assert_eq!(at, "true");
        let (_, at, _) = error("root = 3\n");
        assert_eq!(at, "3");
    }

    #[test]
    fn blocks_are_those_a_device_can_run() {
        assert_eq!(Extents::Line(256).resolve_block(), Some([256, 1, 1]));
        assert_eq!(Extents::Text("32x8".into()).resolve_block(), Some([32, 8, 1]));
        assert_eq!(Extents::List(vec![8, 8, 16]).resolve_block(), Some([8, 8, 16]));
        assert_eq!(Extents::Line(1025).resolve_block(), None);
        assert_eq!(Extents::List(vec![1, 1, 65]).resolve_block(), None);
        assert_eq!(Extents::List(vec![]).resolve(), None);
        assert_eq!(Extents::Line(0).resolve(), None);
    }
}
