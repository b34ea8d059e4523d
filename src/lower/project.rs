//! Everything the files of a run define, and what a name means in one translation unit.
//!
//! A translation unit is a root file with what it includes, transitively. Names are looked up there first; functions
//! that are only declared there are looked for beside it, then in the whole project, nearest path first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::macros::MacroDef;
use crate::ir::ast::{
    Alias, ClassInstantiation, EnumDef, FunctionDef, Instantiation, Name, StructDef, Unit, VarDecl,
};
use crate::source::include::normalize;
use crate::source::{FileId, Sources, Span};

/// What one file contributes: its syntax, its macros and the includes it asks for.
pub struct FileUnit {
    /// Whose text it is.
    pub file: FileId,
    pub unit: Unit,
    pub macros: Vec<MacroDef>,
    pub includes: Vec<FileId>,
    /// Includes in branches that are not compiled: they inform where nothing else does.
    pub dead_includes: Vec<FileId>,
}

#[derive(Clone)]
pub struct Entry<T> {
    pub file: FileId,
    pub item: T,
}

/// Names in macros that are followed into further macros.
const LONGEST_MACRO: usize = 400;

type Table<T> = FxHashMap<Name, Vec<Entry<T>>>;

#[derive(Default)]
pub struct Project {
    pub files: Vec<FileUnit>,
    functions: Table<Arc<FunctionDef>>,
    structs: Table<Arc<StructDef>>,
    enumerators: Table<(Arc<EnumDef>, usize)>,
    enums: Table<Arc<EnumDef>>,
    aliases: Table<Alias>,
    globals: Table<VarDecl>,
    macros: Table<Arc<MacroDef>>,
    instantiations: Table<Instantiation>,
    class_instantiations: Table<ClassInstantiation>,
    directories: Vec<PathBuf>,
    /// The components of each file's directory, as numbers.
    parts: Vec<Vec<u32>>,
    /// Directories with a `main`: programs of their own.
    programs: FxHashSet<PathBuf>,
    closures: Vec<Arc<Vec<FileId>>>,
    includers: Vec<Vec<FileId>>,
    /// Files that are there several times.
    several: FxHashSet<FileId>,
}

/// The files of a translation unit; the root first.
#[derive(Clone)]
pub struct TranslationUnit {
    pub root: FileId,
    set: Arc<FxHashSet<FileId>>,
    /// The number of each of its files that is not there under its own.
    seen_as: Arc<FxHashMap<FileId, FileId>>,
}

impl TranslationUnit {
    pub fn contains(&self, file: FileId) -> bool {
        self.set.contains(&file)
    }

    /// The number under which the unit has a file.
    fn own(&self, file: FileId) -> FileId {
        self.seen_as.get(&file).copied().unwrap_or(file)
    }
}

impl Project {
    pub fn new(sources: &Sources, files: Vec<FileUnit>) -> Project {
        let mut project = Project { files, ..Project::default() };
        let mut seen = FxHashSet::default();
        project.several =
            project.files.iter().map(|file| file.file).filter(|file| !seen.insert(*file)).collect();
        let directory = |file: &FileUnit| {
            normalize(sources.path(file.file)).parent().map(Path::to_owned).unwrap_or_default()
        };
        project.directories = project.files.iter().map(directory).collect();
        let mut numbers = FxHashMap::default();
        for directory in &project.directories {
            let parts = directory.components().map(|part| {
                let next = numbers.len() as u32;
                *numbers.entry(part.as_os_str().to_owned()).or_insert(next)
            });
            project.parts.push(parts.collect());
        }
        project.close_over_includes();
        project.index();
        project
    }

    fn close_over_includes(&mut self) {
        self.includers = vec![Vec::new(); self.files.len()];
        for from in (0..self.files.len() as u32).map(FileId) {
            let closure = self.closure_of(from);
            for node in closure.iter().skip(1) {
                if let Some(includers) = self.includers.get_mut(node.0 as usize) {
                    includers.push(from);
                }
            }
            self.closures.push(Arc::new(closure));
        }
    }

    /// The file, then what it includes, then what it would include; each file once.
    fn closure_of(&self, from: FileId) -> Vec<FileId> {
        let mut reached = vec![from];
        let mut seen = FxHashSet::from_iter([self.file_of(from)]);
        let mut follow = |reached: &mut Vec<FileId>, also_dead: bool| {
            let mut at = 0;
            while let Some(file) = reached.get(at).and_then(|at| self.files.get(at.0 as usize)) {
                let dead = file.dead_includes.iter().filter(|_| also_dead);
                for next in file.includes.iter().chain(dead) {
                    if seen.insert(self.file_of(*next)) {
                        reached.push(*next);
                    }
                }
                at += 1;
            }
        };
        follow(&mut reached, false);
        follow(&mut reached, true);
        reached
    }

    /// Is the file another for some who include it than for others?
    pub fn is_seen_differently(&self, number: FileId) -> bool {
        self.several.contains(&self.file_of(number))
    }

    /// The file that a number stands for.
    pub fn file_of(&self, number: FileId) -> FileId {
        self.files.get(number.0 as usize).map_or(number, |file| file.file)
    }

    fn index(&mut self) {
        for (id, file) in self.files.iter().enumerate() {
            let id = FileId(id as u32);
            let unit = &file.unit;
            for function in &unit.functions {
                if function.name.as_str() == "main"
                    && let Some(directory) = self.directories.get(id.0 as usize)
                {
                    self.programs.insert(directory.clone());
                }
                push(&mut self.functions, function.name, id, function.clone());
            }
            let mut structs: Vec<&Arc<StructDef>> = unit.structs.iter().collect();
            while let Some(item) = structs.pop() {
                push(&mut self.structs, item.name, id, item.clone());
                structs.extend(&item.structs);
                for inner in &item.enums {
                    index_enum(&mut self.enumerators, &mut self.enums, id, inner);
                }
            }
            for item in &unit.enums {
                index_enum(&mut self.enumerators, &mut self.enums, id, item);
            }
            for alias in &unit.aliases {
                push(&mut self.aliases, alias.name, id, alias.clone());
            }
            for global in &unit.globals {
                push(&mut self.globals, global.name, id, global.clone());
            }
            for item in &unit.instantiations {
                push(&mut self.instantiations, item.function.name, id, item.clone());
            }
            for item in &unit.class_instantiations {
                push(&mut self.class_instantiations, item.class.name, id, item.clone());
            }
            for item in &file.macros {
                push(&mut self.macros, item.name, id, Arc::new(item.clone()));
            }
        }
    }

    /// The translation unit whose root is `file`; a header stands for the first file that includes it.
    pub fn unit_of(&self, file: FileId, prefer_includer: bool) -> TranslationUnit {
        let root = match self.includers.get(file.0 as usize).and_then(|list| list.first()) {
            Some(&includer) if prefer_includer => includer,
            _ => file,
        };
        let files = self.closures.get(root.0 as usize).cloned().unwrap_or_default();
        let others = files.iter().map(|file| (self.file_of(*file), *file)).filter(|(file, own)| file != own);
        TranslationUnit {
            root,
            set: Arc::new(files.iter().copied().collect()),
            seen_as: Arc::new(others.collect()),
        }
    }

    /// The files that include `file`, nearest roots in file order.
    pub fn includers(&self, file: FileId) -> &[FileId] {
        self.includers.get(file.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The file and everything it includes.
    pub fn closure(&self, file: FileId) -> &[FileId] {
        self.closures.get(file.0 as usize).map_or(&[], |files| files.as_slice())
    }

    /// Functions of that name with a body, best candidates only: those of the unit, else the nearest elsewhere.
    pub fn functions(&self, tu: &TranslationUnit, name: Name) -> Vec<&Entry<Arc<FunctionDef>>> {
        let Some(entries) = self.functions.get(&name) else { return Vec::new() };
        let bodied = |entry: &&Entry<Arc<FunctionDef>>| entry.item.body.is_some();
        let own: Vec<_> = entries.iter().filter(bodied).filter(|entry| tu.contains(entry.file)).collect();
        if !own.is_empty() {
            return own;
        }
        let others: Vec<_> =
            entries.iter().filter(bodied).filter(|entry| self.related(tu.root, entry.file)).collect();
        let best = others.iter().map(|entry| self.nearness(tu.root, entry.file)).max();
        let mut seen = FxHashSet::default();
        let nearest = others.into_iter().filter(|entry| Some(self.nearness(tu.root, entry.file)) == best);
        // Of several views of one function the first stands in.
        nearest.filter(|entry| seen.insert(entry.item.name_span)).collect()
    }

    /// The declarations without a body of the function whose name is defined at a place: in what its file includes, and
    /// wherever a call would mean it.
    pub fn declarations(&self, defined: Span) -> Vec<&Entry<Arc<FunctionDef>>> {
        let views = self.files.iter().filter(|file| file.file == defined.file);
        let mut functions = views.flat_map(|file| &file.unit.functions);
        let Some(definition) = functions.find(|function| function.name_span == defined) else {
            return Vec::new();
        };
        let is_same = |other: &FunctionDef| {
            let shape = |function: &FunctionDef| (function.params.len(), function.template.len());
            other.body.is_none()
                && shape(other) == shape(definition)
                && (&other.scope, &other.class) == (&definition.scope, &definition.class)
                && other.params.iter().zip(&definition.params).all(|(a, b)| a.ty == b.ty)
        };
        let means_it = |file: FileId| {
            let found = self.functions(&self.unit_of(file, true), definition.name);
            found.iter().any(|entry| entry.item.name_span == defined)
        };
        let entries = self.functions.get(&definition.name).into_iter().flatten();
        entries
            .filter(|entry| is_same(&entry.item))
            .filter(|entry| self.closure(defined.file).contains(&entry.file) || means_it(entry.file))
            .collect()
    }

    /// The explicit instantiations of a function template, in files that see it: `template void f<float>(float *);`
    pub fn instantiations(&self, of: &Entry<Arc<FunctionDef>>) -> Vec<&Entry<Instantiation>> {
        let is_one = |entry: &&Entry<Instantiation>| {
            let given = entry.item.function.args.as_ref().map_or(0, Vec::len);
            entry.item.params.len() == of.item.params.len()
                && given <= of.item.template.len()
                && self.closure(entry.file).contains(&of.file)
        };
        let is_template = !of.item.template.is_empty() && of.item.specialization.is_none();
        let named = self.instantiations.get(&of.item.name).filter(|_| is_template);
        named.into_iter().flatten().filter(is_one).collect()
    }

    /// The explicit instantiations of a method's class, in files that see the method: `template class Solver<double>;`
    pub fn class_instantiations(&self, of: &Entry<Arc<FunctionDef>>) -> Vec<&Entry<ClassInstantiation>> {
        let named = of.item.class.and_then(|class| self.class_instantiations.get(&class));
        named.into_iter().flatten().filter(|entry| self.closure(entry.file).contains(&of.file)).collect()
    }

    /// Is the name declared as a kernel anywhere in the unit or defined as one that the unit can reach?
    pub fn is_kernel(&self, tu: &TranslationUnit, name: Name) -> bool {
        self.functions(tu, name).iter().any(|entry| entry.item.qualifiers.kernel)
    }

    pub fn structs(&self, tu: &TranslationUnit, name: Name) -> Vec<&Entry<Arc<StructDef>>> {
        self.visible(&self.structs, tu, name)
    }

    pub fn enumerator(&self, tu: &TranslationUnit, name: Name) -> Option<&Entry<(Arc<EnumDef>, usize)>> {
        self.visible(&self.enumerators, tu, name).into_iter().next()
    }

    pub fn enumeration(&self, tu: &TranslationUnit, name: Name) -> Option<&Entry<Arc<EnumDef>>> {
        self.visible(&self.enums, tu, name).into_iter().next()
    }

    pub fn alias(&self, tu: &TranslationUnit, name: Name) -> Option<&Entry<Alias>> {
        self.visible(&self.aliases, tu, name).into_iter().next()
    }

    /// A file-scope variable; a definition with an initialiser before a declaration.
    pub fn global(&self, tu: &TranslationUnit, name: Name) -> Option<&Entry<VarDecl>> {
        let found = self.visible(&self.globals, tu, name);
        let has_value = |entry: &&&Entry<VarDecl>| !matches!(entry.item.init, crate::ir::ast::Init::None);
        found.iter().find(has_value).or(found.first()).copied()
    }

    /// The macro a name stands for at a place: the last definition before it in its own file, else the unit's last.
    pub fn macro_at(
        &self,
        tu: &TranslationUnit,
        name: Name,
        file: FileId,
        offset: u32,
    ) -> Option<Arc<MacroDef>> {
        let Some(entries) = self.macros.get(&name) else { return super::pytorch::dispatch_macro(name) };
        let file = tu.own(file);
        let here = entries.iter().rfind(|entry| entry.file == file && entry.item.offset < offset);
        let found = here.or_else(|| entries.iter().rfind(|entry| tu.contains(entry.file)));
        found.map(|entry| entry.item.clone()).filter(|found| !found.is_undef)
    }

    /// The names in the text of a function-like macro and of those that it uses; none for another name.
    pub fn words_of_macro(&self, name: Name) -> Vec<Name> {
        let mut found: FxHashSet<Name> = FxHashSet::default();
        let mut queue = vec![name];
        while let Some(name) = queue.pop() {
            for entry in self.macros.get(&name).into_iter().flatten() {
                if entry.item.params.is_none() || entry.item.is_undef {
                    continue;
                }
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                for word in entry.item.body.split(|c| !is_part(c)) {
                    let begins_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                    if begins_name && found.insert(Name::new(word)) && found.len() <= LONGEST_MACRO {
                        queue.push(Name::new(word));
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    /// Function-like macros whose text launches a kernel, by themselves or through one another.
    pub fn launching_macros(&self) -> FxHashSet<Name> {
        let mut found: FxHashSet<Name> = FxHashSet::default();
        loop {
            let launches = |body: &str| {
                body.contains("<<<")
                    || body.contains("cudaLaunchKernel")
                    || found.iter().any(|name| body.contains(name.as_str()))
            };
            let more: Vec<Name> = self
                .macros
                .iter()
                .filter(|(name, entries)| {
                    !found.contains(name)
                        && entries.iter().any(|entry| {
                            let is_call = entry.item.params.is_some() && !entry.item.is_undef;
                            is_call && launches(&entry.item.body)
                        })
                })
                .map(|(name, _)| *name)
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }

    fn visible<'a, T>(&self, table: &'a Table<T>, tu: &TranslationUnit, name: Name) -> Vec<&'a Entry<T>> {
        let Some(entries) = table.get(&name) else { return Vec::new() };
        let own: Vec<_> = entries.iter().filter(|entry| tu.contains(entry.file)).collect();
        if !own.is_empty() {
            return own;
        }
        // A header alone does not see what its includers define before it; the nearest definition stands in.
        let related: Vec<_> = entries.iter().filter(|entry| self.related(tu.root, entry.file)).collect();
        let best = related.iter().map(|entry| self.nearness(tu.root, entry.file)).max();
        related.into_iter().filter(|entry| Some(self.nearness(tu.root, entry.file)) == best).take(1).collect()
    }

    /// May the files be parts of one program? Beside each other or one above the other; cousins unless both
    /// directories have a `main`.
    fn related(&self, a: FileId, b: FileId) -> bool {
        let (x, y) = (self.parts_of(a), self.parts_of(b));
        if x == y {
            return true;
        }
        let common = common_parts(x, y);
        if common == x.len().min(y.len()) {
            return true;
        }
        let is_program = |file: FileId| {
            self.directories.get(file.0 as usize).is_some_and(|directory| self.programs.contains(directory))
        };
        common + 2 >= x.len().max(y.len()) && !(is_program(a) && is_program(b))
    }

    fn parts_of(&self, file: FileId) -> &[u32] {
        self.parts.get(file.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// How near two files are: components of their directories in common, the same directory best.
    fn nearness(&self, a: FileId, b: FileId) -> usize {
        let (x, y) = (self.parts_of(a), self.parts_of(b));
        2 * common_parts(x, y) + usize::from(x == y)
    }

    /// Do the files share a directory?
    pub fn same_directory(&self, a: FileId, b: FileId) -> bool {
        self.directories.get(a.0 as usize) == self.directories.get(b.0 as usize)
    }
}

fn common_parts(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn index_enum(
    enumerators: &mut Table<(Arc<EnumDef>, usize)>,
    enums: &mut Table<Arc<EnumDef>>,
    file: FileId,
    item: &Arc<EnumDef>,
) {
    push(enums, item.name, file, item.clone());
    for (place, (name, _)) in item.items.iter().enumerate() {
        push(enumerators, *name, file, (item.clone(), place));
    }
}

fn push<T>(table: &mut Table<T>, name: Name, file: FileId, item: T) {
    table.entry(name).or_default().push(Entry { file, item });
}
