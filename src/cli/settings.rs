//! Which configuration holds for a file: the nearest `cudalint.toml`, what it extends, and the command line on top.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use toml::Spanned;
use toml::de::DeTable;

use super::super::ir::facts::Confidence;
use super::super::lint::check::{KernelInputs, KernelShape, Settings};
use super::super::lint::config::{
    ConfidenceName, ConfigError, Document, Extents, FILE_NAMES, FailOn, KernelEntry, LevelName, PYPROJECT,
    PersonaName, VerifyKernel, own_table,
};
use super::super::lint::finding::{Level, RuleInfo};
use super::super::lint::selection::{self, Edition, Layer, Levels, Persona, Selector};
use super::args::{ProjectArgs, SelectionArgs};
use super::failure::Failure;
use super::shell::{Shell, normalize};
use super::walk::{Globs, Root};

/// `extend` chains longer than this are taken for a mistake.
const EXTEND_DEPTH: usize = 16;

/// The configurations of a run, each read once.
pub struct Configs {
    cwd: PathBuf,
    rules: Vec<&'static RuleInfo>,
    /// From `--config FILE`: replaces discovery.
    forced: Option<PathBuf>,
    isolated: bool,
    /// From `--config 'k = v'`, in the order given.
    inline: Vec<Document>,
    line: CommandLine,
    by_directory: BTreeMap<PathBuf, Option<PathBuf>>,
    by_file: BTreeMap<Option<PathBuf>, Rc<Config>>,
    trees: BTreeMap<PathBuf, Option<PathBuf>>,
}

/// What the command line adds to every configuration.
#[derive(Clone, Debug, Default)]
struct CommandLine {
    layer: Layer,
    defines: Vec<(String, Option<String>)>,
    include_dirs: Vec<PathBuf>,
    exclude: Vec<String>,
    persona: Option<PersonaName>,
    preview: bool,
    min_confidence: Option<ConfidenceName>,
}

/// One configuration, resolved for all files that share it.
#[derive(Debug)]
pub struct Config {
    /// Lowest first: what is extended, the file, `--config`.
    pub documents: Vec<Document>,
    /// Of each document: its own words, then its overrides.
    layers: Vec<(Layer, Vec<PathLayer>)>,
    line: Layer,
    excludes: Vec<Globs>,
    rules: Vec<&'static RuleInfo>,
    pub persona: Persona,
    pub edition: Edition,
    pub preview: bool,
    pub min_confidence: Confidence,
    min_confidence_on_line: bool,
    pub fail_on: FailOn,
    /// Absolute; with the error where it is missing.
    pub baseline: Option<(PathBuf, ConfigError)>,
    /// Absolute.
    pub include_dirs: Vec<PathBuf>,
    pub analysis: Rc<Settings>,
}

#[derive(Debug)]
struct PathLayer {
    paths: Globs,
    layer: Layer,
    min_confidence: Option<Confidence>,
}

/// What holds for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSettings {
    pub levels: Levels,
    pub min_confidence: Confidence,
}

impl Configs {
    pub fn new(
        shell: &Shell<'_>,
        project: &ProjectArgs,
        words: &SelectionArgs,
        rules: &[&'static RuleInfo],
    ) -> Result<Configs, Failure> {
        let mut configs = Configs {
            cwd: shell.cwd.clone(),
            rules: rules.to_vec(),
            forced: None,
            isolated: project.isolated,
            inline: Vec::new(),
            line: CommandLine::new(shell, project, words, rules)?,
            by_directory: BTreeMap::new(),
            by_file: BTreeMap::new(),
            trees: BTreeMap::new(),
        };
        for text in &project.config {
            if text.contains('=') {
                configs.inline.push(inline(&shell.cwd, text)?);
            } else {
                let path = shell.absolute(Path::new(text));
                if !path.is_file() {
                    return Err(Failure::Usage(format!("no such file: {text}")));
                }
                configs.forced = Some(path);
            }
        }
        Ok(configs)
    }

    /// The configuration of a file or directory.
    pub fn of(&mut self, path: &Path) -> Result<Rc<Config>, Failure> {
        let file = match (&self.forced, self.isolated) {
            (Some(file), _) => Some(file.clone()),
            (None, true) => None,
            (None, false) => self.nearest(path),
        };
        if let Some(config) = self.by_file.get(&file) {
            return Ok(config.clone());
        }
        let mut documents = Vec::new();
        if let Some(file) = &file {
            self.load(file, &mut documents, &mut Vec::new())?;
        }
        documents.extend(self.inline.iter().cloned());
        let config = Rc::new(self.resolve(documents)?);
        self.by_file.insert(file, config.clone());
        Ok(config)
    }

    /// The configuration file that holds for a path, if any.
    pub fn nearest(&mut self, path: &Path) -> Option<PathBuf> {
        let directory = if path.is_dir() { path } else { path.parent()? };
        if let Some(known) = self.by_directory.get(directory) {
            return known.clone();
        }
        let found = file_in(directory).or_else(|| directory.parent().and_then(|parent| self.nearest(parent)));
        self.by_directory.insert(directory.to_owned(), found.clone());
        found
    }

    /// The project that a directory belongs to: up to a repository or a configuration with `root = true`, else up
    /// to the outermost configuration file, else the directory itself.
    pub fn project_root(&mut self, directory: &Path) -> Root {
        self.tree(directory).map_or_else(|| Root::Directory(directory.to_owned()), Root::Tree)
    }

    fn tree(&mut self, directory: &Path) -> Option<PathBuf> {
        if let Some(known) = self.trees.get(directory) {
            return known.clone();
        }
        let here = || Some(directory.to_owned());
        let file = file_in(directory);
        let is_root = |file: &PathBuf| {
            // A file with errors is reported when a checked file needs it.
            let document = read_document(&self.cwd, file).ok();
            document.and_then(|document| document.config.root).is_some_and(|root| *root.as_ref())
        };
        let tree = if directory.join(".git").exists() || file.as_ref().is_some_and(is_root) {
            here()
        } else {
            let above = directory.parent().and_then(|parent| self.tree(parent));
            above.or_else(|| file.and_then(|_| here()))
        };
        self.trees.insert(directory.to_owned(), tree.clone());
        tree
    }

    /// Reads a file after what it extends.
    fn load(
        &self,
        file: &Path,
        documents: &mut Vec<Document>,
        chain: &mut Vec<PathBuf>,
    ) -> Result<(), Failure> {
        let document = read_document(&self.cwd, file)?;
        chain.push(file.to_owned());
        if let Some(extend) = &document.config.extend {
            let target = normalize(&document.directory.join(extend.as_ref()));
            if chain.contains(&target) || chain.len() >= EXTEND_DEPTH {
                return Err(document
                    .error(extend.span(), "`extend` leads back to a file that extends it")
                    .into());
            }
            if !target.is_file() {
                let message = format!("no such file: {}", self.display(&target).display());
                return Err(document.error(extend.span(), message).into());
            }
            self.load(&target, documents, chain)?;
        }
        documents.push(document);
        Ok(())
    }

    fn display(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.cwd).map_or_else(|_| path.to_owned(), Path::to_owned)
    }

    fn resolve(&self, documents: Vec<Document>) -> Result<Config, Failure> {
        let mut config = Config {
            layers: Vec::new(),
            line: self.line.layer.clone(),
            excludes: Vec::new(),
            rules: self.rules.clone(),
            persona: Persona::default(),
            edition: Edition::default(),
            preview: self.line.preview,
            min_confidence: Confidence::Assumed,
            min_confidence_on_line: self.line.min_confidence.is_some(),
            fail_on: FailOn::Warn,
            baseline: None,
            include_dirs: Vec::new(),
            analysis: Rc::default(),
            documents: Vec::new(),
        };
        let mut analysis = Settings::default();
        for document in &documents {
            config.apply(document, &mut analysis)?;
        }
        config.finish(&self.line, &self.cwd, &mut analysis)?;
        analysis.include_dirs = config.include_dirs.iter().map(|path| self.display(path)).collect();
        config.analysis = Rc::new(analysis);
        config.documents = documents;
        Ok(config)
    }
}

/// Reads `--config 'KEY = VALUE'`; what concerns the finding of files has no place there.
fn inline(cwd: &Path, text: &str) -> Result<Document, ConfigError> {
    let document = Document::parse(Path::new("--config"), cwd, text)?;
    let file_only = [
        ("extend", document.config.extend.as_ref().map(Spanned::span)),
        ("root", document.config.root.as_ref().map(Spanned::span)),
    ];
    for (key, span) in file_only {
        if let Some(span) = span {
            let help = "`--config FILE` takes a file for all files".to_owned();
            let error = document.error(span, format!("`{key}` works in a file only"));
            return Err(error.with_help(Some(help)));
        }
    }
    Ok(document)
}

/// The configuration file in a directory: of our own, or one of Python's with a table for us.
fn file_in(directory: &Path) -> Option<PathBuf> {
    let own = FILE_NAMES.iter().map(|name| directory.join(name)).find(|file| file.is_file());
    own.or_else(|| {
        let file = directory.join(PYPROJECT);
        let text = std::fs::read_to_string(&file).ok().filter(|text| text.contains("cudalint"))?;
        // One that cannot be read is the business of others, unless the table is there for all to see.
        let ours = match DeTable::parse(&text) {
            Ok(root) => own_table(&file, root.get_ref()).is_some(),
            Err(_) => text.contains("[tool.cudalint"),
        };
        ours.then_some(file)
    })
}

/// Reads and parses one configuration file.
pub fn read_document(cwd: &Path, file: &Path) -> Result<Document, Failure> {
    let name = file.strip_prefix(cwd).unwrap_or(file);
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", name.display())))?;
    Ok(Document::parse(name, file.parent().unwrap_or(cwd), &text)?)
}

impl CommandLine {
    fn new(
        shell: &Shell<'_>,
        project: &ProjectArgs,
        words: &SelectionArgs,
        rules: &[&'static RuleInfo],
    ) -> Result<CommandLine, Failure> {
        let parse = |option: &str, words: &[String]| -> Result<Vec<Selector>, Failure> {
            let parse = |word: &String| {
                Selector::parse(word.trim(), rules).map_err(|unknown| {
                    let help = unknown.suggestion.as_ref().map(|meant| format!("did you mean `{meant}`?"));
                    Failure::from(ConfigError::new(format!("--{option}: {unknown}")).with_help(help))
                })
            };
            words.iter().map(parse).collect()
        };
        let select = parse("select", &words.select)?;
        let layer = Layer {
            select: (!select.is_empty()).then_some(select),
            extend_select: parse("extend-select", &words.extend_select)?,
            ignore: parse("ignore", &words.ignore)?,
            levels: BTreeMap::new(),
        };
        let define = |text: &String| {
            define(text)
                .ok_or_else(|| Failure::Usage(format!("--define: `{text}` is not NAME or NAME=VALUE")))
        };
        Ok(CommandLine {
            layer,
            defines: project.define.iter().map(define).collect::<Result<_, _>>()?,
            include_dirs: project.include_dir.iter().map(|path| shell.absolute(path)).collect(),
            exclude: project.exclude.clone(),
            persona: words.pedantic.then_some(PersonaName::Pedantic).or(words.persona),
            preview: words.preview,
            min_confidence: words.min_confidence,
        })
    }
}

impl Config {
    /// Lays one document over what lower ones said: lists are replaced, `extend-select`, `rules`, `kernel` and
    /// `overrides` add up.
    fn apply(&mut self, document: &Document, analysis: &mut Settings) -> Result<(), ConfigError> {
        let own = &document.config;
        let layer = layer(document, &self.rules, &own.select, &own.extend_select, &own.ignore, &own.rules)?;
        let mut overrides = Vec::new();
        for entry in own.overrides.iter().flatten() {
            overrides.push(PathLayer {
                paths: globs(document, &entry.paths)?,
                layer: layer_of_override(document, &self.rules, entry)?,
                min_confidence: entry.min_confidence.as_ref().map(|name| (*name.as_ref()).into()),
            });
        }
        self.layers.push((layer, overrides));
        set(&mut self.persona, &own.persona);
        set(&mut self.edition, &own.edition);
        set(&mut self.preview, &own.preview);
        set(&mut self.min_confidence, &own.min_confidence);
        set(&mut self.fail_on, &own.fail_on);
        if let Some(baseline) = &own.baseline {
            let error = document.error(baseline.span(), format!("no such file: {}", baseline.as_ref()));
            let help = "`cudalint baseline create` makes it".to_owned();
            let file = normalize(&document.directory.join(baseline.as_ref()));
            self.baseline = Some((file, error.with_help(Some(help))));
        }
        if let Some(exclude) = &own.exclude {
            self.excludes = vec![globs(document, exclude)?];
        }
        self.apply_analysis(document, analysis)
    }

    fn apply_analysis(&mut self, document: &Document, analysis: &mut Settings) -> Result<(), ConfigError> {
        let own = &document.config;
        if let Some(list) = &own.include_dirs {
            let absolute = |dir: &Spanned<String>| normalize(&document.directory.join(dir.as_ref()));
            self.include_dirs = list.iter().map(absolute).collect();
        }
        if let Some(list) = &own.kernel_macros {
            analysis.kernel_macros = list.iter().map(|name| name.as_ref().clone()).collect();
        }
        if let Some(list) = &own.define {
            let read = |text: &Spanned<String>| {
                let error = || document.error(text.span(), "not a definition: expected NAME or NAME=VALUE");
                define(text.as_ref()).ok_or_else(error)
            };
            analysis.defines = list.iter().map(read).collect::<Result<_, _>>()?;
        }
        for entry in own.kernel.iter().flatten() {
            analysis.shapes.push(kernel_shape(document, entry)?);
        }
        for entry in own.verify.iter().flat_map(|section| &section.kernel).flatten() {
            analysis.inputs.push(kernel_inputs(document, entry)?);
        }
        Ok(())
    }

    /// Lays the command line over the documents.
    fn finish(&mut self, line: &CommandLine, cwd: &Path, analysis: &mut Settings) -> Result<(), Failure> {
        self.persona = line.persona.map_or(self.persona, Persona::from);
        self.preview |= line.preview;
        self.min_confidence = line.min_confidence.map_or(self.min_confidence, Confidence::from);
        analysis.pedantic = self.persona == Persona::Pedantic;
        for (name, value) in &line.defines {
            analysis.defines.retain(|(known, _)| known != name);
            analysis.defines.push((name.clone(), value.clone()));
        }
        self.include_dirs.extend(line.include_dirs.iter().cloned());
        if !line.exclude.is_empty() {
            let globs = Globs::new(cwd, line.exclude.iter().map(String::as_str));
            let globs = globs.map_err(|(_, error)| Failure::Usage(format!("--exclude: {error}")))?;
            self.excludes.push(globs);
        }
        Ok(())
    }

    pub fn excludes(&self, absolute: &Path) -> bool {
        self.excludes.iter().any(|globs| globs.matches(absolute))
    }

    pub fn for_file(&self, absolute: &Path) -> FileSettings {
        let mut layers = Vec::new();
        let mut min_confidence = self.min_confidence;
        for (layer, overrides) in &self.layers {
            layers.push(layer);
            for entry in overrides.iter().filter(|entry| entry.paths.matches(absolute)) {
                layers.push(&entry.layer);
                if !self.min_confidence_on_line {
                    min_confidence = entry.min_confidence.unwrap_or(min_confidence);
                }
            }
        }
        layers.push(&self.line);
        let levels = selection::levels(&self.rules, self.persona, self.edition, self.preview, &layers);
        FileSettings { levels, min_confidence }
    }
}

fn set<T: Copy, U: From<T>>(slot: &mut U, value: &Option<Spanned<T>>) {
    if let Some(value) = value {
        *slot = U::from(*value.as_ref());
    }
}

fn globs(document: &Document, list: &[Spanned<String>]) -> Result<Globs, ConfigError> {
    let globs = Globs::new(&document.directory, list.iter().map(|glob| glob.as_ref().as_str()));
    globs.map_err(|(at, error)| {
        let span = list.get(at).map_or(0..0, Spanned::span);
        document.error(span, format!("not a glob: {error}"))
    })
}

type Words = Option<Vec<Spanned<String>>>;
type RuleLevels = Option<BTreeMap<Spanned<String>, Spanned<LevelName>>>;

fn layer_of_override(
    document: &Document,
    rules: &[&'static RuleInfo],
    entry: &super::super::lint::config::Override,
) -> Result<Layer, ConfigError> {
    layer(document, rules, &entry.select, &entry.extend_select, &entry.ignore, &entry.rules)
}

fn layer(
    document: &Document,
    rules: &[&'static RuleInfo],
    select: &Words,
    extend_select: &Words,
    ignore: &Words,
    levels: &RuleLevels,
) -> Result<Layer, ConfigError> {
    let word = |word: &str, span| {
        Selector::parse(word, rules).map_err(|unknown| {
            let help = unknown.suggestion.as_ref().map(|meant| format!("did you mean `{meant}`?"));
            document.error(span, unknown.to_string()).with_help(help)
        })
    };
    let parse = |words: &Words| -> Result<Vec<Selector>, ConfigError> {
        words.iter().flatten().map(|name| word(name.as_ref(), name.span())).collect()
    };
    let mut named = BTreeMap::new();
    for (name, level) in levels.iter().flatten() {
        match word(name.as_ref(), name.span())? {
            Selector::Rule(rule) => named.insert(rule, Level::from(*level.as_ref())),
            Selector::All | Selector::Category(_) => {
                let message = format!("`{}` is not a rule; levels are set rule by rule", name.as_ref());
                return Err(document.error(name.span(), message));
            }
        };
    }
    Ok(Layer {
        select: select.is_some().then(|| parse(select)).transpose()?,
        extend_select: parse(extend_select)?,
        ignore: parse(ignore)?,
        levels: named,
    })
}

/// `NAME` or `NAME=VALUE`; function-like macros have no place here.
fn define(text: &str) -> Option<(String, Option<String>)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None => (text.trim(), None),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let valid = name.chars().all(word) && name.starts_with(|c: char| word(c) && !c.is_ascii_digit());
    valid.then(|| (name.to_owned(), value))
}

fn kernel_shape(document: &Document, entry: &KernelEntry) -> Result<KernelShape, ConfigError> {
    check_glob(document, &entry.name)?;
    let block = block_of(document, &entry.block)?;
    let grid = entry.grid.as_ref().map(|grid| grid_of(document, grid)).transpose()?;
    Ok(KernelShape { name: entry.name.as_ref().clone(), block, grid })
}

fn kernel_inputs(document: &Document, entry: &VerifyKernel) -> Result<KernelInputs, ConfigError> {
    check_glob(document, &entry.name)?;
    let args = entry.args.iter().flatten().map(|(name, value)| (name.clone(), value.to_bits()));
    Ok(KernelInputs {
        name: entry.name.as_ref().clone(),
        block: entry.block.as_ref().map(|block| block_of(document, block)).transpose()?,
        grid: entry.grid.as_ref().map(|grid| grid_of(document, grid)).transpose()?,
        shared_bytes: entry.shared_bytes,
        args: args.collect(),
        sizes: entry.sizes.iter().flatten().map(|(name, bytes)| (name.clone(), *bytes)).collect(),
    })
}

fn check_glob(document: &Document, name: &Spanned<String>) -> Result<(), ConfigError> {
    match globset::Glob::new(name.as_ref()) {
        Ok(_) => Ok(()),
        Err(error) => Err(document.error(name.span(), format!("not a glob: {}", error.kind()))),
    }
}

fn block_of(document: &Document, block: &Spanned<Extents>) -> Result<[u32; 3], ConfigError> {
    block.as_ref().resolve_block().ok_or_else(|| {
        document.error(block.span(), "not a block: one to three extents, at most 1024 threads and 64 in z")
    })
}

fn grid_of(document: &Document, grid: &Spanned<Extents>) -> Result<[u64; 3], ConfigError> {
    grid.as_ref()
        .resolve()
        .ok_or_else(|| document.error(grid.span(), "not a grid: one to three extents above zero"))
}
