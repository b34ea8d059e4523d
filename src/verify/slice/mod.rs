//! Cuts a kernel and what it reaches out of a project: one translation unit that NVRTC compiles.
//!
//! ```text
//! file + what it includes -> declarations in order -> those the kernel's names reach -> text with #line directives
//! ```
//!
//! NVRTC has no host headers and refuses host functions, so a `.cu` file as it lies on disk does not compile. Kept are the
//! declarations whose names the kernel's text reaches (through types, constants, macros, other device functions), every
//! macro and `#if`, and CUDA's own device headers; dropped are host functions, host members of classes, other headers.
//! Kept text stands in its own line and column, so that the machine code's line table speaks of the project's files.

mod functor;
mod grid_loops;
mod items;
mod prelude;
mod tokens;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::ast::{Name, Unit};
use crate::source::{FileId, Sources, Span};
use crate::syntax::conditional::{self, Avoided};
pub use functor::after_captures;
use items::{Item, Macros, Role, directive_named, items};

/// Cuts kernels out of one project; finds once which file includes which.
#[derive(Debug)]
pub struct Slicer<'a> {
    sources: &'a Sources,
    /// For each file the project files that it includes, by the path written.
    includes: Vec<Vec<(&'a str, FileId)>>,
    /// Definitions of loop macros that the project may not have.
    loops: BTreeMap<Name, String>,
}

/// A class in place of a lambda, whose own type has no name: it stands where the lambda's function stood.
#[derive(Clone, Debug, PartialEq)]
pub struct Functor {
    pub name: String,
    /// From the `[` to the `}`.
    pub lambda: Span,
    /// Its members: what the lambda captures, and what names of the host mean.
    pub members: String,
}

impl<'a> Slicer<'a> {
    pub fn new(sources: &'a Sources) -> Slicer<'a> {
        let mut by_name: FxHashMap<&std::ffi::OsStr, Vec<FileId>> = FxHashMap::default();
        for id in sources.ids() {
            if let Some(name) = sources.path(id).file_name() {
                by_name.entry(name).or_default().push(id);
            }
        }
        let includes = sources.ids().map(|id| {
            let paths =
                tokens::tokens(&sources.get(id).text).into_iter().filter_map(|t| include_path(t.text));
            paths.filter_map(|path| Some((path, resolve(sources, &by_name, id, path)?))).collect()
        });
        Slicer { sources, includes: includes.collect(), loops: BTreeMap::new() }
    }

    /// With the loop macros of these units.
    pub fn reading(self, units: impl IntoIterator<Item = &'a Unit>) -> Slicer<'a> {
        Slicer { loops: grid_loops::definitions(units), ..self }
    }

    /// The same of other texts of the same files.
    pub fn of<'b>(&self, sources: &'b Sources) -> Slicer<'b> {
        Slicer { loops: self.loops.clone(), ..Slicer::new(sources) }
    }

    /// One translation unit for `kernel`, as `file` with what it includes (or `seen_from`, or the first file that includes it)
    /// defines it. `kernel` may be a name expression (`ns::k<float>`); only its last plain name counts. It may name `functors`,
    /// whose lambdas the file sees or is seen by. The error says what is in the way.
    pub fn slice(
        &self,
        file: FileId,
        seen_from: Option<FileId>,
        kernel: &str,
        functors: &[Functor],
    ) -> Result<String, String> {
        let plain = kernel.split('<').next().unwrap_or_default();
        let plain = plain.rsplit("::").next().unwrap_or_default().trim();
        let user = functors.last().map(|functor| functor.lambda.file);
        let root = self.root(seen_from.or(user).unwrap_or(file));
        let order = self.included(root);
        let functors = functors.iter().map(|functor| functor::Parts::of(functor, self.sources));
        let functors: Vec<functor::Parts> = functors.collect::<Result<_, _>>()?;
        let mut macros = Macros::default();
        for &id in &order {
            for token in tokens::tokens(&self.sources.get(id).text) {
                if token.kind == tokens::Kind::Directive {
                    macros.define(token.text);
                }
            }
        }
        let (mut files, mut avoided) = (FxHashMap::default(), FxHashMap::default());
        let mut features = Vec::new();
        for &id in &order {
            let decided = conditional::alone(&self.sources.get(id).text);
            avoided.insert(id, decided.avoided);
            features.extend(decided.features.into_iter().map(|ends| (id, ends)));
            let found = items(&self.sources.get(id).text, &macros)
                .map_err(|why| format!("{}: {why}", self.sources.path(id).display()))?;
            files.insert(id, found);
        }
        let mut project = Project { slicer: self, macros, files, avoided, open: FxHashSet::default() };
        // Types and constants of the instance are reached too.
        let instance = tokens::tokens(kernel).into_iter().filter(|token| token.kind == tokens::Kind::Word);
        let instance = instance.map(|token| token.text);
        let instance: Vec<&str> = instance.chain(functors.iter().flat_map(functor::Parts::uses)).collect();
        let kept = project.reached(&order, plain, &instance)?;
        project.open_features(&kept, plain, &features);
        let mut text = project.text(root, &kept, &instance, &functors);
        for functor in &functors {
            if !text.contains(&functor.begin()) {
                return Err(format!("the function around the lambda of `{}` was not found", functor.name()));
            }
        }
        project.use_namespaces(&kept, plain, &functors, &mut text);
        Ok(text)
    }

    fn included_by(&self, file: FileId) -> &[(&'a str, FileId)] {
        self.includes.get(file.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The first file that includes `file`, directly or not, and that none includes; `file` itself where none does.
    fn root(&self, file: FileId) -> FileId {
        let mut root = file;
        let mut seen = FxHashSet::from_iter([file]);
        let includer = |of: FileId| {
            self.sources.ids().find(|&id| self.included_by(id).iter().any(|&(_, inner)| inner == of))
        };
        while let Some(outer) = includer(root).filter(|&outer| seen.insert(outer)) {
            root = outer;
        }
        root
    }

    /// `root` and the files it includes, directly or not.
    fn included(&self, root: FileId) -> Vec<FileId> {
        let mut order = vec![root];
        let mut seen = FxHashSet::from_iter([root]);
        let mut at = 0;
        while let Some(&id) = order.get(at) {
            order.extend(
                self.included_by(id).iter().map(|&(_, inner)| inner).filter(|&inner| seen.insert(inner)),
            );
            at += 1;
        }
        order
    }
}

/// Whether a translation unit declares shared memory whose size the launch gives.
pub fn has_dynamic_shared(source: &str) -> bool {
    let tokens = tokens::tokens(source);
    tokens.iter().enumerate().any(|(at, token)| {
        // `extern __shared__`, `extern volatile __shared__`, `extern __align__(16) __shared__`
        token.is("extern") && tokens.iter().skip(at + 1).take(8).any(|later| later.is("__shared__"))
    })
}

/// The plain names of the kernels that a file defines, in order.
pub fn kernels(sources: &Sources, file: FileId) -> Vec<String> {
    let text = &sources.get(file).text;
    let mut macros = Macros::default();
    for token in tokens::tokens(text) {
        if token.kind == tokens::Kind::Directive {
            macros.define(token.text);
        }
    }
    let found = items(text, &macros).unwrap_or_default().into_iter();
    let kernels = found.filter(|item| item.role == Role::Function && item.kernel);
    let mut names: Vec<String> =
        kernels.filter_map(|item| item.names.first().map(|name| (*name).to_owned())).collect();
    names.dedup();
    names
}

/// The path of an `#include` line.
fn include_path(directive: &str) -> Option<&str> {
    let rest = directive_named(directive, "include")?.trim();
    let inner = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
    inner.or_else(|| rest.strip_prefix('<').and_then(|rest| rest.split('>').next()))
}

/// The project's file that an `#include` in `from` means: beside it, or the only one whose path ends so.
fn resolve(
    sources: &Sources,
    by_name: &FxHashMap<&std::ffi::OsStr, Vec<FileId>>,
    from: FileId,
    path: &str,
) -> Option<FileId> {
    let candidates = by_name.get(Path::new(path).file_name()?)?;
    let beside = normal(&sources.path(from).parent().unwrap_or(Path::new("")).join(path));
    if let Some(&found) = candidates.iter().find(|&&id| normal(sources.path(id)) == beside) {
        return Some(found);
    }
    let wanted: PathBuf =
        Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let mut fits = candidates.iter().filter(|&&id| sources.path(id).ends_with(&wanted));
    let first = fits.next()?;
    fits.next().is_none().then_some(*first)
}

fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

struct Project<'s, 'a> {
    slicer: &'s Slicer<'a>,
    macros: Macros<'a>,
    files: FxHashMap<FileId, Vec<Item<'a>>>,
    /// Of each file.
    avoided: FxHashMap<FileId, Vec<Avoided>>,
    /// Starts of directives that are left out, so that what is between them is there.
    open: FxHashSet<(FileId, usize)>,
}

type Place = (FileId, usize);

impl<'a> Project<'_, 'a> {
    fn item(&self, (file, index): Place) -> Option<&Item<'a>> {
        self.files.get(&file)?.get(index)
    }

    fn text_of(&self, (file, index): Place) -> &'a str {
        let range = self.item((file, index)).map(|item| item.range.clone()).unwrap_or_default();
        self.slicer.sources.get(file).text.get(range).unwrap_or_default()
    }

    /// The declarations that the kernel needs, itself included.
    fn reached(&self, order: &[FileId], kernel: &str, instance: &[&str]) -> Result<FxHashSet<Place>, String> {
        let mut by_name: FxHashMap<&str, Vec<Place>> = FxHashMap::default();
        let mut roots = Vec::new();
        let mut pasted = Vec::new();
        for &file in order {
            for (index, item) in self.files.get(&file).into_iter().flatten().enumerate() {
                let declared = matches!(
                    item.role,
                    Role::Function | Role::Type | Role::Alias | Role::Variable | Role::MacroCall
                );
                if !declared || !item.device {
                    continue;
                }
                for name in &item.names {
                    by_name.entry(name).or_default().push((file, index));
                }
                if item.makes_device_code {
                    pasted.push((file, index));
                }
                if item.kernel && item.names.first() == Some(&kernel) {
                    roots.push((file, index));
                }
            }
        }
        if roots.is_empty() {
            // A macro may stand for the kernel's whole definition.
            let calls = by_name.get(kernel).into_iter().flatten().copied();
            roots.extend(calls.filter(|&place| self.item(place).is_some_and(|i| i.role == Role::MacroCall)));
        }
        if roots.is_empty() {
            return Err(format!("no definition of kernel `{kernel}` was found"));
        }
        // Their names may be pasted together, so nothing can be seen to reach them.
        roots.extend(pasted);
        let mut kept: FxHashSet<Place> = roots.iter().copied().collect();
        let mut todo: VecDeque<Place> = roots.into();
        let mut known: FxHashSet<&str> = FxHashSet::default();
        let mut words = instance.to_vec();
        loop {
            while let Some(word) = words.pop() {
                if !known.insert(word) {
                    continue;
                }
                words.extend(self.macros.body(word).unwrap_or_default());
                for &next in by_name.get(word).into_iter().flatten() {
                    // No kernel is called; a variable may have the name of one.
                    let is_kernel = self.item(next).is_some_and(|item| item.kernel);
                    if !is_kernel && kept.insert(next) {
                        todo.push_back(next);
                    }
                }
            }
            let Some(place) = todo.pop_front() else { break };
            words.extend(self.item(place).into_iter().flat_map(|item| item.uses.iter().copied()));
        }
        Ok(kept)
    }

    /// The kernel is there though it stands behind the switch of a feature: nobody asks for one that is not to be compiled.
    fn open_features(
        &mut self,
        kept: &FxHashSet<Place>,
        kernel: &str,
        features: &[(FileId, [Range<u32>; 2])],
    ) {
        let is_kernel = |item: &&Item| item.kernel && item.names.first() == Some(&kernel);
        for &(file, index) in kept {
            let Some(item) = self.files.get(&file).and_then(|items| items.get(index)).filter(is_kernel)
            else {
                continue;
            };
            let inside = |start: &Range<u32>, end: &Range<u32>| {
                start.end as usize <= item.range.start && item.range.end <= end.start as usize
            };
            for (_, [start, end]) in
                features.iter().filter(|(of, [start, end])| *of == file && inside(start, end))
            {
                self.open.extend([(file, start.start as usize), (file, end.start as usize)]);
            }
        }
    }

    /// Names the namespaces of the kernel and of the functors, so that a name expression need not.
    fn use_namespaces(
        &self,
        kept: &FxHashSet<Place>,
        kernel: &str,
        functors: &[functor::Parts],
        text: &mut String,
    ) {
        let is_kernel = |item: &Item| item.kernel && item.names.first() == Some(&kernel);
        let kernels = kept.iter().filter(|place| self.item(**place).is_some_and(is_kernel));
        let kernels =
            kernels.map(|&(file, index)| (file, self.item((file, index)).map_or(0, |item| item.range.start)));
        let mut paths: Vec<String> = Vec::new();
        for (file, start) in kernels.chain(functors.iter().map(functor::Parts::place)) {
            let path = self.namespaces(file, start);
            for length in 1..=path.len() {
                paths.push(path.get(..length).unwrap_or_default().join("::"));
            }
        }
        paths.sort();
        paths.dedup();
        for path in paths {
            text.push_str(&format!("using namespace {path};\n"));
        }
    }

    /// The names of the namespaces around a place of a file, outermost first.
    fn namespaces(&self, file: FileId, start: usize) -> Vec<&'a str> {
        const WORDS: [&str; 3] = ["inline", "namespace", "extern"];
        let mut open: Vec<Vec<&str>> = Vec::new();
        let before = self.files.get(&file).into_iter().flatten().take_while(|item| item.range.start < start);
        for item in before {
            match item.role {
                Role::Open => {
                    open.push(item.names.iter().filter(|name| !WORDS.contains(name)).copied().collect());
                }
                Role::Close => {
                    open.pop();
                }
                Role::Directive
                | Role::Using
                | Role::Function
                | Role::Type
                | Role::Alias
                | Role::Variable
                | Role::MacroCall
                | Role::Dropped => {}
            }
        }
        open.concat()
    }

    fn text(
        &self,
        root: FileId,
        kept: &FxHashSet<Place>,
        instance: &[&str],
        functors: &[functor::Parts],
    ) -> String {
        let mut uses: FxHashSet<&str> = instance.iter().copied().collect();
        for &place in kept {
            uses.extend(self.item(place).into_iter().flat_map(|item| item.uses.iter().copied()));
        }
        for word in uses.clone() {
            uses.extend(self.macros.body(word).unwrap_or_default());
        }
        let namespaces: FxHashSet<&str> = self
            .files
            .values()
            .flatten()
            .filter(|item| item.role == Role::Open)
            .flat_map(|item| item.names.iter().copied())
            .collect();
        let aliases = self.files.values().flatten().filter(|item| item.role == Role::Using);
        for item in aliases {
            // `using namespace x` and `namespace c = x`, where `c` is used, count as uses of `x`.
            let plain = item.uses.first() == Some(&"using");
            if plain || item.uses.iter().any(|word| uses.contains(word)) {
                uses.extend(item.uses.iter().copied());
            }
        }
        // What the project has itself does not stand in for itself.
        let types = self.files.values().flatten();
        let types = types.filter(|item| matches!(item.role, Role::Type | Role::Alias));
        for name in types.flat_map(|item| item.names.iter().copied()) {
            if name == "complex" || super::tensor::index_bytes(name).is_some() {
                uses.remove(name);
            }
        }
        let mut out = prelude::text(&uses);
        for (name, definition) in &self.slicer.loops {
            if uses.contains(name.as_str()) && self.macros.body(name.as_str()).is_none() {
                out.push_str(definition);
            }
        }
        let mut writer = Writer { out, at: None, avoided: &self.avoided, functors };
        let mut seen = FxHashSet::default();
        self.write(root, kept, &namespaces, &mut seen, &mut writer);
        writer.out.push('\n');
        writer.out
    }

    fn write(
        &self,
        file: FileId,
        kept: &FxHashSet<Place>,
        namespaces: &FxHashSet<&str>,
        seen: &mut FxHashSet<FileId>,
        writer: &mut Writer<'_>,
    ) {
        if !seen.insert(file) {
            return;
        }
        for (index, item) in self.files.get(&file).into_iter().flatten().enumerate() {
            let sources = self.slicer.sources;
            let text = self.text_of((file, index));
            match item.role {
                Role::Directive => match include_path(text) {
                    Some(path) => {
                        let inner =
                            self.slicer.included_by(file).iter().find(|(written, _)| *written == path);
                        if let Some(&(_, inner)) = inner {
                            self.write(inner, kept, namespaces, seen, writer);
                        } else if prelude::is_device_header(path, &writer.out) {
                            writer.put(sources, file, item.range.clone(), &[]);
                        }
                    }
                    None if self.open.contains(&(file, item.range.start)) => {}
                    None if directive_named(text, "error").is_some() => {
                        for index in self.instead(file, item.range.start) {
                            self.write_declaration((file, index), kept, writer);
                        }
                    }
                    None if text.contains("once") && directive_named(text, "pragma").is_some() => {}
                    None => writer.put(sources, file, item.range.clone(), &[]),
                },
                Role::Open | Role::Close => writer.put(sources, file, item.range.clone(), &[]),
                Role::Using => {
                    let known = |name: &&str| namespaces.contains(name) || prelude::NAMESPACES.contains(name);
                    let is_host = |name: &&str| prelude::HOST_NAMESPACES.contains(name);
                    if item.uses.iter().any(known) && !item.uses.iter().any(is_host) {
                        writer.put(sources, file, item.range.clone(), &[]);
                    }
                }
                Role::Function | Role::Type | Role::Alias | Role::Variable | Role::MacroCall => {
                    self.write_declaration((file, index), kept, writer);
                }
                Role::Dropped => writer.put_directives(sources, file, item.range.clone()),
            }
            writer.put_functors(sources, file, &item.range);
        }
    }

    fn write_declaration(&self, (file, index): Place, kept: &FxHashSet<Place>, writer: &mut Writer<'_>) {
        let Some(item) = self.item((file, index)) else { return };
        if kept.contains(&(file, index)) {
            writer.put_avoiding(self.slicer.sources, file, item.range.clone(), &item.host);
        } else {
            writer.put_directives(self.slicer.sources, file, item.range.clone());
        }
    }

    /// The declarations that stand in for the `#error` at `start`.
    fn instead(&self, file: FileId, start: usize) -> Vec<usize> {
        let mut avoided = self.avoided.get(&file).into_iter().flatten();
        let Some(found) = avoided.find(|avoided| avoided.error.start as usize == start) else {
            return Vec::new();
        };
        let instead = found.instead.start as usize..found.instead.end as usize;
        let items = self.files.get(&file).into_iter().flatten().enumerate();
        let inside = items.filter(|(_, item)| instead.contains(&item.range.start));
        inside.map(|(index, _)| index).collect()
    }
}

/// Puts pieces of files where their lines and columns are kept.
struct Writer<'p> {
    out: String,
    /// The file and the end of what was put last.
    at: Option<(FileId, usize)>,
    avoided: &'p FxHashMap<FileId, Vec<Avoided>>,
    functors: &'p [functor::Parts<'p>],
}

impl Writer<'_> {
    /// The functors whose lambdas stand in a declaration.
    fn put_functors(&mut self, sources: &Sources, file: FileId, range: &Range<usize>) {
        for functor in self.functors {
            let (of, start) = functor.place();
            if of == file && range.contains(&start) {
                self.out.push_str(&functor.begin());
                self.at = None;
                self.put(sources, file, functor.body(), &[]);
                self.out.push_str("\n};\n");
                self.at = None;
            }
        }
    }

    /// With the branches that are meant where an `#error` stands.
    fn put_avoiding(&mut self, sources: &Sources, file: FileId, range: Range<usize>, blank: &[Range<usize>]) {
        let here = |bytes: &Range<u32>| bytes.start as usize..bytes.end as usize;
        let within = |part: &Range<usize>, of: &Range<usize>| part.start >= of.start && part.end <= of.end;
        let mut at = range.start;
        for Avoided { error, instead } in self.avoided.get(&file).into_iter().flatten() {
            let (error, instead) = (here(error), here(instead));
            if !within(&error, &(at..range.end)) || blank.iter().any(|host| within(&error, host)) {
                continue;
            }
            self.put(sources, file, at..error.start, blank);
            self.put(sources, file, instead, blank);
            at = error.end;
        }
        self.put(sources, file, at..range.end, blank);
    }

    fn put(&mut self, sources: &Sources, file: FileId, range: Range<usize>, blank: &[Range<usize>]) {
        let source = sources.get(file);
        let gap = match self.at {
            Some((last, end)) if last == file => source.text.get(end..range.start),
            _ => None,
        };
        match gap {
            // On the line of what was put before it: only its column is to be kept.
            Some(gap) if !gap.contains('\n') => self.out.push_str(&spaces(gap)),
            _ => {
                let line = source.line(range.start as u32);
                let path = line_path(&source.path);
                self.out.push_str(&format!("\n#line {line} \"{path}\"\n"));
                let begin = source.line_range(line).start;
                self.out.push_str(&spaces(source.text.get(begin..range.start).unwrap_or_default()));
            }
        }
        let mut at = range.start;
        for host in blank.iter().filter(|host| host.start >= range.start && host.end <= range.end) {
            self.out.push_str(source.text.get(at..host.start).unwrap_or_default());
            self.out.push_str(&only_directives(source.text.get(host.clone()).unwrap_or_default()));
            at = host.end;
        }
        self.out.push_str(source.text.get(at..range.end).unwrap_or_default());
        self.at = Some((file, range.end));
    }

    /// Of what is left out, the conditions: their other ends may lie outside it.
    fn put_directives(&mut self, sources: &Sources, file: FileId, range: Range<usize>) {
        let text = sources.get(file).text.get(range.clone()).unwrap_or_default();
        for token in tokens::tokens(text).iter().filter(|token| token.kind == tokens::Kind::Directive) {
            if include_path(token.text).is_none() && directive_named(token.text, "error").is_none() {
                self.put(sources, file, range.start + token.start..range.start + token.end(), &[]);
            }
        }
    }
}

/// The text with all but its preprocessor lines blanked.
fn only_directives(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for token in tokens::tokens(text).iter().filter(|token| token.kind == tokens::Kind::Directive) {
        out.push_str(&spaces(text.get(at..token.start).unwrap_or_default()));
        if directive_named(token.text, "error").is_none() {
            out.push_str(token.text);
            at = token.end();
        } else {
            at = token.start;
        }
    }
    out.push_str(&spaces(text.get(at..).unwrap_or_default()));
    out
}

/// A path as `#line` directives spell it.
pub(super) fn line_path(path: &Path) -> String {
    path.display().to_string().replace('\\', "/").replace('"', "")
}

/// White space of the same length in bytes with the same line ends.
fn spaces(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceFile;

    fn project(files: &[(&str, &str)]) -> Sources {
        let mut sources = Sources::default();
        for (path, text) in files {
            sources.add(SourceFile::new(*path, (*text).to_owned()));
        }
        sources
    }

    #[test]
    fn keeps_what_the_kernel_reaches_and_drops_host_code() {
        let header = "#pragma once\n#include <vector>\nstruct P { P(std::vector<int> v); float* p; };\n\
                      inline void host() {}\n__device__ float twice(float x) { return 2 * x; }\n";
        let main = "#include \"h.cuh\"\n#define N 4\nconst int unused = 3;\n\
                    __global__ void k(P a) { a.p[N] = twice(1); }\n__global__ void other() {}\n\
                    int main() { k<<<1, 1>>>({}); }\n";
        let sources = project(&[("src/h.cuh", header), ("src/a.cu", main)]);
        let file = sources.ids().nth(1).expect("two files");
        let text = Slicer::new(&sources).slice(file, None, "k", &[]).expect("a slice");
        for kept in ["struct P {", "float* p;", "twice(float x)", "#define N 4", "__global__ void k(P a)"] {
            assert!(text.contains(kept), "`{kept}` is missing in\n{text}");
        }
        for dropped in ["vector", "host()", "unused", "other", "main"] {
            assert!(!text.contains(dropped), "`{dropped}` is left in\n{text}");
        }
        assert!(text.contains("#line 4 \"src/a.cu\"\n__global__ void k"), "{text}");
    }

    #[test]
    fn a_header_is_cut_out_of_the_file_that_sees_it() {
        let sources = project(&[
            ("a.cu", "#define HALF\n#include \"k.h\"\n"),
            ("b.cu", "#include \"k.h\"\n"),
            ("k.h", "__global__ void k() {}\n"),
        ]);
        let [a, b, header] = [0, 1, 2].map(FileId);
        let slicer = Slicer::new(&sources);
        let has = |from| slicer.slice(header, from, "k", &[]).expect("a slice").contains("#define HALF");
        assert_eq!([has(None), has(Some(a)), has(Some(b))], [true, true, false]);
    }

    #[test]
    fn branches_are_chosen_as_the_analysis_chooses() {
        let text = "#if defined(ONE)\ntypedef float real;\n#define STEP 1\n#elif defined(TWO)\ntypedef double real;\n#else\n\
                    #error \"define ONE or TWO\"\n#endif\n\
                    __global__ void other() {\n#ifndef A\n#error A\n#endif\n}\n\
                    __global__ void k(real* p, int other) {\n#ifdef ONE\n  p[0] = STEP;\n#else\n#error none\n#endif\n}\n\
                    #ifdef FEATURE\n__global__ void f(real* p) { p[1] = 1; }\n#endif\n";
        let sources = project(&[("a.cu", text)]);
        let file = sources.ids().next().expect("one file");
        let slicer = Slicer::new(&sources);
        let text = slicer.slice(file, None, "k", &[]).expect("a slice");
        assert!(!text.contains("#error") && !text.contains("void other"), "{text}");
        // Both where their condition holds and in place of the error, on their own lines.
        for part in
            ["#line 2 \"a.cu\"\ntypedef float real;", "#line 3 \"a.cu\"\n#define STEP 1", "  p[0] = STEP;\n"]
        {
            assert_eq!(text.matches(part).count(), 2, "{part} in\n{text}");
        }
        assert_eq!(text.matches("typedef double real;").count(), 1);
        assert!(text.contains("#ifdef FEATURE") && !text.contains("void f"), "{text}");
        let text = slicer.slice(file, None, "f", &[]).expect("a slice");
        assert!(!text.contains("#ifdef FEATURE") && text.contains("void f"), "{text}");
    }

    #[test]
    fn a_missing_kernel_is_a_reason() {
        let sources = project(&[("a.cu", "__global__ void k() {}\n")]);
        let file = sources.ids().next().expect("one file");
        assert_eq!(
            Slicer::new(&sources).slice(file, None, "x", &[]),
            Err("no definition of kernel `x` was found".to_owned())
        );
    }
}
