//! Reads a project: the files to check, and around them what they need to be understood.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::super::ir::ast::Gap;
use super::super::source::include::nearest;
use super::super::source::{FileId, SourceFile, Sources, Span};
use super::args::ProjectArgs;
use super::failure::Failure;
use super::makefile;
use super::relevance::{self, Candidate};
use super::settings::{Config, Configs};
use super::shell::{Shell, normalize};
use super::walk::{self, Kind, Root};

/// A project in memory.
#[derive(Debug, Default)]
pub struct Project {
    pub sources: Sources,
    /// Absolute, by [`FileId`].
    pub paths: Vec<PathBuf>,
    pub checked: Vec<FileId>,
    /// The configuration of each checked file, in the same order.
    pub configs: Vec<Rc<Config>>,
    /// Files that could not be read or are no text, and a context that was cut off.
    pub gaps: Vec<Gap>,
    /// The project's directory, for paths in machine formats. Absolute.
    pub root: PathBuf,
    /// Directories that were named and hold nothing to check. As reports print them.
    pub empty: Vec<PathBuf>,
    cwd: PathBuf,
    /// What of another version would be checked, too.
    scope: Scope,
    /// Where includes of checked files are also looked for. Absolute.
    include_dirs: Vec<PathBuf>,
    /// The file whose text came from standard input.
    pub stdin: Option<FileId>,
    /// What Makefiles define for the files of a directory, which is named as in `sources`.
    pub build_defines: Vec<(PathBuf, Vec<String>)>,
}

impl Project {
    pub fn path(&self, id: FileId) -> &Path {
        self.paths.get(id.0 as usize).map_or(Path::new(""), PathBuf::as_path)
    }

    /// The configuration of a checked file.
    pub fn config(&self, id: FileId) -> Option<&Config> {
        let at = self.checked.binary_search(&id).ok()?;
        self.configs.get(at).map(|config| &**config)
    }

    /// A path as files of accepted findings and reports for machines name it: relative, with `/`.
    pub fn name(&self, directory: &Path, id: FileId) -> String {
        let path = self.path(id);
        let relative = path.strip_prefix(directory).unwrap_or(path);
        relative.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
    }

    /// The same project at another version: `old` has the text of each file that differs, `None` where it is absent.
    /// Of the files that both versions have, the same ones are checked; of the others, those that were asked for.
    pub fn at(&self, old: &Overlay, configs: &mut Configs) -> Result<Project, Failure> {
        let mut files: BTreeMap<&Path, (SourceFile, bool)> = BTreeMap::new();
        for (at, path) in self.paths.iter().enumerate() {
            let file = FileId(at as u32);
            if !old.contains_key(path.as_path()) {
                let checked = self.checked.binary_search(&file).is_ok();
                files.insert(path, (self.sources.get(file).clone(), checked));
            }
        }
        // Without device code, and perhaps included.
        let mut spare: BTreeMap<&Path, &[u8]> = BTreeMap::new();
        for (path, text) in old {
            let Some(text) = text else { continue };
            match classify(path, text.clone(), Role::Context) {
                Content::Text(text) => {
                    let checked = match self.paths.iter().position(|known| known == path) {
                        Some(at) => self.checked.binary_search(&FileId(at as u32)).is_ok(),
                        None => self.scope.covers(path, configs)?,
                    };
                    files.insert(path, (self.source(path, text), checked));
                }
                Content::Irrelevant if memchr::memchr(0, text).is_none() => {
                    spare.insert(path, text);
                }
                Content::Irrelevant | Content::Unreadable(_) => {}
            }
        }
        self.add_included(&mut files, spare);
        let mut project = Project { gaps: Vec::new(), ..self.without_files() };
        for (path, (file, checked)) in files {
            let file = project.add(path, file);
            if checked {
                project.configs.push(configs.of(path)?);
                project.checked.push(file);
            }
        }
        Ok(project)
    }

    /// A header of constants matters in every version in which it is included.
    fn add_included<'a>(
        &self,
        files: &mut BTreeMap<&'a Path, (SourceFile, bool)>,
        mut spare: BTreeMap<&'a Path, &'a [u8]>,
    ) {
        let mut queue: Vec<&Path> =
            if spare.is_empty() { Vec::new() } else { files.keys().copied().collect() };
        while let Some(file) = queue.pop() {
            let Some((source, _)) = files.get(file) else { continue };
            for name in included(source.text.as_bytes()) {
                let directory = file.parent().unwrap_or(Path::new(""));
                let places = std::iter::once(directory).chain(self.include_dirs.iter().map(PathBuf::as_path));
                let found = places.map(|directory| normalize(&directory.join(&name)));
                let found = found.into_iter().find_map(|path| spare.remove_entry(path.as_path()));
                let found = found.or_else(|| {
                    let near = nearest(directory, &name, spare.keys().map(|path| (*path, *path)))?;
                    spare.remove_entry(near)
                });
                if let Some((path, text)) = found {
                    files.insert(path, (self.source(path, text.to_vec()), false));
                    queue.push(path);
                }
            }
        }
    }

    fn source(&self, path: &Path, text: Vec<u8>) -> SourceFile {
        SourceFile::from_bytes(path.strip_prefix(&self.cwd).unwrap_or(path), text)
    }

    /// Everything that holds for any set of files.
    fn without_files(&self) -> Project {
        Project {
            root: self.root.clone(),
            cwd: self.cwd.clone(),
            empty: self.empty.clone(),
            scope: self.scope.clone(),
            include_dirs: self.include_dirs.clone(),
            build_defines: self.build_defines.clone(),
            ..Project::default()
        }
    }

    /// Of two versions, what their differences can reach, with what that needs to be understood. All else has the same
    /// findings in both.
    pub fn differing(self, other: Project) -> (Project, Project) {
        let (ours, theirs) = (self.texts(), other.texts());
        let changed = |path: &Path| ours.get(path) != theirs.get(path);
        let mut reached = self.reached(&changed);
        reached.extend(other.reached(&changed));
        (self.limited(&reached), other.limited(&reached))
    }

    fn texts(&self) -> FxHashMap<&Path, &str> {
        let text = |(path, file)| (path, self.sources.get(file).text.as_str());
        self.paths.iter().map(PathBuf::as_path).zip(self.sources.ids()).map(text).collect()
    }

    fn candidates(&self, checked: impl Fn(&Path) -> bool) -> Vec<Candidate<'_>> {
        let files = self.paths.iter().zip(self.sources.ids());
        let candidate = |(path, file)| {
            let text = self.sources.get(file).text.as_bytes();
            Candidate { path, text, checked: checked(path) }
        };
        files.map(|(path, file)| (path.as_path(), file)).map(candidate).collect()
    }

    /// The paths that the changed ones can matter to.
    fn reached(&self, changed: &dyn Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
        let changed: Vec<bool> = self.paths.iter().map(|path| changed(path)).collect();
        let reached = relevance::reached(&self.candidates(|_| false), &changed, &self.include_dirs);
        self.paths.iter().zip(reached).filter(|(_, reached)| *reached).map(|(path, _)| path.clone()).collect()
    }

    /// Checks only some of the files, and keeps of the others what these need.
    fn limited(mut self, to: &BTreeSet<PathBuf>) -> Project {
        let mut kept = self.without_files();
        let config: FxHashMap<FileId, Rc<Config>> = self
            .checked
            .drain(..)
            .zip(self.configs.drain(..))
            .filter(|(file, _)| self.paths.get(file.0 as usize).is_some_and(|path| to.contains(path)))
            .collect();
        let checked: BTreeSet<&Path> = config.keys().map(|file| self.path(*file)).collect();
        let needed = relevance::needed(&self.candidates(|path| checked.contains(path)), &self.include_dirs);
        let with_gaps: BTreeSet<FileId> = self.gaps.iter().map(|gap| gap.span.file).collect();
        let mut renamed: FxHashMap<FileId, FileId> = FxHashMap::default();
        for (at, (path, needed)) in self.paths.iter().zip(needed).enumerate() {
            let old = FileId(at as u32);
            if !needed && !with_gaps.contains(&old) {
                continue;
            }
            let new = kept.add(path, self.sources.get(old).clone());
            renamed.insert(old, new);
            if let Some(config) = config.get(&old) {
                kept.checked.push(new);
                kept.configs.push(config.clone());
            }
        }
        let renamed = |file: FileId| renamed.get(&file).copied();
        kept.stdin = self.stdin.and_then(renamed);
        let moved = |gap: Gap| {
            let file = renamed(gap.span.file)?;
            Some(Gap { span: Span { file, ..gap.span }, reason: gap.reason })
        };
        kept.gaps = std::mem::take(&mut self.gaps).into_iter().filter_map(moved).collect();
        kept
    }

    /// Reads the Makefile beside the files of each directory, or above where there is none beside them.
    fn read_makefiles(&mut self) {
        let mut directories: BTreeMap<PathBuf, &Path> = BTreeMap::new();
        for (at, path) in self.paths.iter().enumerate() {
            let shown = self.sources.path(FileId(at as u32)).parent();
            if let (Some(shown), Some(directory)) = (shown, path.parent()) {
                directories.insert(shown.to_owned(), directory);
            }
        }
        let read = |directory: &Path| {
            let mut places = directory.ancestors().take(2);
            places.find_map(makefile::defines).filter(|defines| !defines.is_empty())
        };
        self.build_defines = directories
            .into_iter()
            .filter_map(|(shown, directory)| Some((shown, read(directory)?)))
            .collect();
    }

    fn add(&mut self, path: &Path, file: SourceFile) -> FileId {
        self.paths.push(path.to_owned());
        self.sources.add(file)
    }
}

/// Texts of another version of the project by absolute path; `None` where the file is absent there.
pub type Overlay = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// What was asked for.
#[derive(Clone, Debug, Default)]
struct Scope {
    /// Directories.
    walked: BTreeSet<PathBuf>,
    /// Files that were named one by one.
    named: BTreeSet<PathBuf>,
    no_ignore: bool,
    force_exclude: bool,
}

impl Scope {
    /// Whether a file that is not on disk would be checked if it were.
    fn covers(&self, path: &Path, configs: &mut Configs) -> Result<bool, Failure> {
        let hidden = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with('.');
        let inside = |directory: &PathBuf| {
            let below = path.strip_prefix(directory).ok();
            below.is_some_and(|below| self.no_ignore || !below.iter().any(hidden))
        };
        let named = self.named.contains(path);
        if !named && !self.walked.iter().any(inside) {
            return Ok(false);
        }
        Ok((named && !self.force_exclude) || !configs.of(path)?.excludes(path))
    }
}

/// What is to be read, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Context,
    /// Found in a directory that was named, or named itself.
    Checked,
}

/// The content of one path.
enum Content {
    Text(Vec<u8>),
    /// No device code: nothing to say about it.
    Irrelevant,
    Unreadable(String),
}

/// By absolute path; put into order at the end.
type Contents = FxHashMap<PathBuf, Content>;

/// Finds and reads everything that `args` name.
pub fn load(shell: &mut Shell<'_>, args: &ProjectArgs, configs: &mut Configs) -> Result<Project, Failure> {
    let scope = Scope { no_ignore: args.no_ignore, force_exclude: args.force_exclude, ..Scope::default() };
    let mut plan = Plan { scope, ..Plan::default() };
    plan.targets(shell, args, configs)?;
    plan.context(args, configs);
    let mut contents = plan.read();
    let include_dirs = plan.include_dirs(configs)?;
    plan.includes(&mut contents, &include_dirs);
    plan.forget_unrelated(&mut contents, &include_dirs);
    plan.finish(shell, configs, contents, include_dirs)
}

#[derive(Default)]
struct Plan {
    files: BTreeMap<PathBuf, Role>,
    unreadable: Vec<(PathBuf, String)>,
    stdin: Option<(PathBuf, Vec<u8>)>,
    scope: Scope,
    roots: BTreeSet<Root>,
    cut_off: bool,
    empty: Vec<PathBuf>,
}

impl Plan {
    fn targets(
        &mut self,
        shell: &mut Shell<'_>,
        args: &ProjectArgs,
        configs: &mut Configs,
    ) -> Result<(), Failure> {
        let here = [PathBuf::from(".")];
        let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
        for path in paths {
            if path.as_os_str() == "-" {
                self.standard_input(shell, args)?;
                continue;
            }
            let absolute = shell.absolute(path);
            if absolute.is_dir() {
                self.directory(&absolute, args, configs)?;
            } else if absolute.exists() {
                self.file(absolute, args, configs)?;
            } else {
                return Err(Failure::Usage(format!("no such file or directory: {}", path.display())));
            }
        }
        Ok(())
    }

    fn standard_input(&mut self, shell: &mut Shell<'_>, args: &ProjectArgs) -> Result<(), Failure> {
        let mut text = Vec::new();
        let read = shell.stdin.read_to_end(&mut text);
        read.map_err(|error| Failure::Usage(format!("cannot read standard input: {error}")))?;
        let name = args.stdin_filename.clone().unwrap_or_else(|| PathBuf::from("stdin.cu"));
        let path = shell.absolute(&name);
        self.files.insert(path.clone(), Role::Checked);
        self.stdin = Some((path, text));
        Ok(())
    }

    fn directory(&mut self, root: &Path, args: &ProjectArgs, configs: &mut Configs) -> Result<(), Failure> {
        let (files, unreadable) = walk::directory(root, args.no_ignore, None);
        self.unreadable.extend(unreadable);
        self.scope.walked.insert(root.to_owned());
        if files.is_empty() {
            self.empty.push(root.to_owned());
        }
        for file in files {
            // What is excluded still informs.
            let excluded = configs.of(&file)?.excludes(&file);
            let role = self.files.entry(file).or_insert(Role::Context);
            *role = if excluded { *role } else { Role::Checked };
        }
        Ok(())
    }

    fn file(&mut self, file: PathBuf, args: &ProjectArgs, configs: &mut Configs) -> Result<(), Failure> {
        self.scope.named.insert(file.clone());
        if !(args.force_exclude && configs.of(&file)?.excludes(&file)) {
            self.files.insert(file, Role::Checked);
        }
        Ok(())
    }

    /// The include directories of all checked files together.
    fn include_dirs(&self, configs: &mut Configs) -> Result<Vec<PathBuf>, Failure> {
        let mut dirs = Vec::new();
        for (file, role) in &self.files {
            if *role == Role::Checked {
                for dir in &configs.of(file)?.include_dirs {
                    if !dirs.contains(dir) {
                        dirs.push(dir.clone());
                    }
                }
            }
        }
        Ok(dirs)
    }

    /// Adds the files of the projects that the checked files belong to.
    fn context(&mut self, args: &ProjectArgs, configs: &mut Configs) {
        let directories: BTreeSet<PathBuf> =
            self.files.keys().filter_map(|file| file.parent().map(Path::to_owned)).collect();
        self.roots = directories.iter().map(|directory| configs.project_root(directory)).collect();
        let mut budget = walk::CONTEXT_FILES;
        for root in self.roots.clone() {
            let (path, depth) = match &root {
                Root::Tree(path) => (path, None),
                Root::Directory(path) => (path, Some(1)),
            };
            if path.ancestors().any(|above| self.scope.walked.contains(above)) {
                continue;
            }
            for file in walk::directory(path, args.no_ignore, depth).0 {
                if self.files.contains_key(&file) {
                    continue;
                }
                if budget == 0 {
                    self.cut_off = true;
                    return;
                }
                budget -= 1;
                self.files.insert(file, Role::Context);
            }
        }
    }

    fn read(&self) -> Contents {
        let read = |(path, role): (&PathBuf, &Role)| {
            let content = match &self.stdin {
                Some((name, text)) if name == path => classify(path, text.clone(), *role),
                _ => read(path, *role),
            };
            (path.clone(), content)
        };
        let files: Vec<(&PathBuf, &Role)> = self.files.iter().collect();
        files.into_par_iter().map(read).collect::<Vec<_>>().into_iter().collect()
    }

    /// Follows includes: a header of constants holds no device code and matters all the same. Those that are not beside the file
    /// or in an include directory are looked for among all files of the projects, as the analysis does.
    fn includes(&mut self, contents: &mut Contents, include_dirs: &[PathBuf]) {
        let is_text = |(path, content): (&PathBuf, &Content)| match content {
            Content::Text(_) => Some(path.clone()),
            Content::Irrelevant | Content::Unreadable(_) => None,
        };
        let mut queue: Vec<PathBuf> = contents.iter().filter_map(is_text).collect();
        // Which files are read does not depend on the order, unless the budget ends.
        queue.sort();
        let mut by_name: FxHashMap<OsString, Vec<PathBuf>> = FxHashMap::default();
        for path in contents.keys() {
            if let Some(name) = path.file_name() {
                by_name.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
        while let Some(file) = queue.pop() {
            let Some(Content::Text(text)) = contents.get(&file) else { continue };
            for name in included(text) {
                let directory = file.parent().unwrap_or(Path::new(""));
                let places = std::iter::once(directory).chain(include_dirs.iter().map(PathBuf::as_path));
                let mut places = places.map(|directory| normalize(&directory.join(&name)));
                let found = places.find(|path| contents.contains_key(path) || path.is_file());
                let found = found.or_else(|| {
                    let alike = by_name.get(Path::new(&name).file_name()?)?;
                    nearest(directory, &name, alike.iter().map(|path| (path, path.as_path()))).cloned()
                });
                let Some(path) = found else { continue };
                let known = matches!(contents.get(&path), Some(Content::Text(_) | Content::Unreadable(_)));
                if known || contents.len() >= 2 * walk::CONTEXT_FILES {
                    continue;
                }
                if let Some(text) = read_context(&path) {
                    self.files.entry(path.clone()).or_insert(Role::Context);
                    contents.insert(path.clone(), Content::Text(text));
                    queue.push(path);
                }
            }
        }
    }

    /// Drops context that cannot matter to what is checked.
    fn forget_unrelated(&self, contents: &mut Contents, include_dirs: &[PathBuf]) {
        let mut files: Vec<Candidate<'_>> = Vec::new();
        for (path, content) in contents.iter() {
            if let Content::Text(text) = content {
                files.push(Candidate { path, text, checked: self.files.get(path) == Some(&Role::Checked) });
            }
        }
        files.sort_by(|a, b| a.path.cmp(b.path));
        let needed = relevance::needed(&files, include_dirs);
        let unrelated = files.iter().zip(needed).filter(|(_, needed)| !*needed);
        let unrelated: Vec<PathBuf> = unrelated.map(|(file, _)| file.path.to_owned()).collect();
        for path in unrelated {
            contents.remove(&path);
        }
    }

    fn finish(
        self,
        shell: &Shell<'_>,
        configs: &mut Configs,
        mut contents: Contents,
        include_dirs: Vec<PathBuf>,
    ) -> Result<Project, Failure> {
        let (root, cwd) = (self.root(shell), shell.cwd.clone());
        let mut project =
            Project { root, cwd, scope: self.scope.clone(), include_dirs, ..Project::default() };
        project.empty = self.empty.iter().map(|directory| shell.display(directory)).collect();
        for (path, reason) in self.unreadable {
            contents.insert(path, Content::Unreadable(reason));
        }
        let mut contents: Vec<(PathBuf, Content)> = contents.into_iter().collect();
        contents.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, content) in contents {
            let shown = shell.display(&path);
            match content {
                Content::Irrelevant => {}
                Content::Unreadable(reason) => {
                    let file = project.add(&path, SourceFile::new(shown, String::new()));
                    project.gaps.push(Gap { span: Span::new(file, 0, 0), reason });
                }
                Content::Text(text) => {
                    let file = project.add(&path, SourceFile::from_bytes(shown, text));
                    if self.files.get(&path) == Some(&Role::Checked) {
                        project.configs.push(configs.of(&path)?);
                        project.checked.push(file);
                        let is_stdin = self.stdin.as_ref().is_some_and(|(name, _)| *name == path);
                        project.stdin = project.stdin.or(is_stdin.then_some(file));
                    }
                }
            }
        }
        if self.cut_off
            && let Some(file) = project.checked.first()
        {
            let reason =
                format!("the project has more than {} files; the rest was not read", walk::CONTEXT_FILES);
            project.gaps.push(Gap { span: Span::new(*file, 0, 0), reason });
        }
        project.read_makefiles();
        Ok(project)
    }

    /// The one directory that all projects of the run lie in, or else the working directory.
    fn root(&self, shell: &Shell<'_>) -> PathBuf {
        let mut roots = self.roots.iter().map(|root| match root {
            Root::Tree(path) => path.clone(),
            Root::Directory(_) => shell.cwd.clone(),
        });
        match (roots.next(), roots.next()) {
            (Some(root), None) => root,
            _ => shell.cwd.clone(),
        }
    }
}

fn read(path: &Path, role: Role) -> Content {
    if role == Role::Context
        && std::fs::metadata(path).map_or(0, |data| data.len()) > walk::CONTEXT_FILE_BYTES
    {
        return Content::Irrelevant;
    }
    match std::fs::read(path) {
        Ok(bytes) => classify(path, bytes, role),
        Err(_) if role == Role::Context => Content::Irrelevant,
        Err(error) => Content::Unreadable(format!("cannot be read: {error}")),
    }
}

fn classify(path: &Path, bytes: Vec<u8>, role: Role) -> Content {
    if Kind::of(path) == Kind::Maybe && !walk::has_device_code(&bytes) {
        return Content::Irrelevant;
    }
    match (memchr::memchr(0, &bytes), role) {
        (None, _) => Content::Text(bytes),
        (Some(_), Role::Context) => Content::Irrelevant,
        (Some(_), Role::Checked) => Content::Unreadable("is not text: it holds a NUL byte".to_owned()),
    }
}

/// An included file, whatever it holds, within the budget for context.
fn read_context(path: &Path) -> Option<Vec<u8>> {
    let small = std::fs::metadata(path).ok()?.len() <= walk::CONTEXT_FILE_BYTES;
    let bytes = small.then(|| std::fs::read(path).ok()).flatten()?;
    memchr::memchr(0, &bytes).is_none().then_some(bytes)
}

/// The names in `#include "…"` and `#include <…/…>` lines. A lone name in angle brackets is one of the compiler's.
fn included(text: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for at in memchr::memmem::find_iter(text, b"include") {
        let before = text.get(..at).unwrap_or_default().trim_ascii_end();
        let after = text.get(at + b"include".len()..).unwrap_or_default();
        let line = after.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_start();
        if !before.ends_with(b"#") {
            continue;
        }
        let within = |open: &[u8], close: u8| line.strip_prefix(open)?.split(|byte| *byte == close).next();
        let angled = within(b"<", b'>').filter(|name| name.contains(&b'/'));
        let name = within(b"\"", b'"').or(angled).and_then(|name| std::str::from_utf8(name).ok());
        names.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_includes_are_found_in_every_spelling() {
        let text = b"#include \"a.h\"\n # include\t\"b/c.cuh\" // \"no\"\n#include <d.h>\n#include <d/e.h>\nx include \"e\"\n#include \"\"";
        assert_eq!(included(text), ["a.h", "b/c.cuh", "d/e.h"]);
    }

    #[test]
    fn headers_without_device_code_and_binaries_are_left_out() {
        let text = |path: &str, bytes: &[u8]| match classify(Path::new(path), bytes.to_vec(), Role::Checked) {
            Content::Text(_) => "text",
            Content::Irrelevant => "irrelevant",
            Content::Unreadable(_) => "unreadable",
        };
        assert_eq!(text("a.h", b"int x;"), "irrelevant");
        assert_eq!(text("a.h", b"__device__ int x;"), "text");
        assert_eq!(text("a.cu", b"int x;"), "text");
        assert_eq!(text("a.cu", b"\0ELF"), "unreadable");
    }
}
