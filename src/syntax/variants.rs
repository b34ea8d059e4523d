//! A header is what its includers make of it: `#define HALF` before `#include "types.h"` decides the header's `#if`s.
//!
//! Each program is gone through as the preprocessor would, with only those macros in view that some included file asks
//! for and another defines. A file is masked once for each distinct set of values among the names that it, or what it
//! includes, asks for. Nearly all files have one such set, and cost nothing more.
//!
//! ```text
//! a.cu: #define HALF      types.h: #ifdef HALF         {HALF = ""}  types.h with half    seen from a.cu
//!       #include "types.h"         typedef half real;  {}           types.h with float   seen from b.cu
//! b.cu: #include "types.h"         #else …
//! ```

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::conditional::words;
use super::macros::{Defines, MacroDef, Presence};
use super::mask::Masked;
use crate::source::FileId;

/// Variants of one file; real headers have one to three. More are a gap.
const MOST: usize = 16;

/// Includes within includes.
const DEPTH: usize = 100;

/// A file as some of its includers see it.
pub struct Variant {
    pub file: FileId,
    /// Macros that the includers define and the file's conditions, or those of what it includes, ask for; by name.
    given: Vec<Known>,
    /// `None` where it is masked as if it stood alone.
    pub masked: Option<Masked>,
    /// What it includes, as it sees them: places among the variants.
    pub includes: Vec<usize>,
    /// What it would include in branches that are not compiled.
    pub dead_includes: Vec<FileId>,
    /// There would be more variants than [`MOST`]; this one stands in for them.
    pub stands_in: bool,
    /// What its includers see afterwards of the macros in view, in order.
    effects: Vec<Known>,
}

/// A macro in view and the file that defines it.
#[derive(Clone, Debug)]
struct Known {
    file: FileId,
    def: MacroDef,
}

type Table = FxHashMap<String, Known>;

/// What is known of the files before.
pub struct Files<'a> {
    /// Each masked with the macros of what it includes, where that stood alone.
    pub plain: &'a [Masked],
    /// What each includes, one for each `#include` of [`Masked::includes`].
    pub edges: &'a [Vec<Option<FileId>>],
    /// What the command line or a build file defines for a file.
    pub defines: &'a (dyn Fn(FileId) -> &'a Defines + 'a),
    /// Masks a file.
    pub mask: &'a (dyn Fn(FileId, &Defines) -> Masked + 'a),
}

/// The variants of all files that macros of others can decide about, and of their includers; none of the others. The
/// first of a file is the one that its first includer sees.
pub fn variants(files: &Files<'_>) -> Vec<Variant> {
    let in_view = in_view(files);
    if in_view.is_empty() {
        return Vec::new();
    }
    let mut walk = Walk {
        files,
        closures: vec![None; files.plain.len()],
        in_view,
        of: FxHashMap::default(),
        found: Vec::new(),
        open: Vec::new(),
    };
    let ids = || (0..files.plain.len() as u32).map(FileId);
    let included: FxHashSet<FileId> = files.edges.iter().flatten().flatten().copied().collect();
    for root in ids().filter(|id| !included.contains(id)) {
        if !walk.closure(root).asked.is_empty() {
            walk.variant(root, &Table::default());
        }
    }
    walk.found
}

/// The names that an included file asks for and another file, or a build file, defines; with those in their texts.
fn in_view(files: &Files<'_>) -> FxHashSet<String> {
    let ids = || (0..files.plain.len() as u32).map(FileId);
    let mut defined: FxHashMap<&str, Vec<FileId>> = FxHashMap::default();
    for (id, masked) in ids().zip(files.plain) {
        for def in masked.macros.iter().filter(|def| def.presence != Presence::Dead) {
            let places = defined.entry(&def.name).or_default();
            if places.last() != Some(&id) {
                places.push(id);
            }
        }
    }
    let built: FxHashSet<&str> =
        ids().flat_map(|id| (files.defines)(id).iter().map(|def| def.name.as_str())).collect();
    let included: FxHashSet<FileId> = files.edges.iter().flatten().flatten().copied().collect();
    let mut queue: Vec<&str> = Vec::new();
    for (id, masked) in ids().zip(files.plain).filter(|(id, _)| included.contains(id)) {
        let elsewhere = |name: &str| {
            built.contains(name) || defined.get(name).into_iter().flatten().any(|file| *file != id)
        };
        queue.extend(masked.tested.iter().map(String::as_str).filter(|name| elsewhere(name)));
    }
    let mut names: FxHashSet<String> = FxHashSet::default();
    while let Some(name) = queue.pop() {
        if !names.insert(name.to_owned()) {
            continue;
        }
        for file in defined.get(name).into_iter().flatten() {
            let macros = files.plain.get(file.0 as usize).into_iter().flat_map(|masked| &masked.macros);
            for def in macros.filter(|def| def.name == name) {
                queue.extend(words(&def.body).filter(|word| defined.contains_key(word)));
            }
        }
    }
    names
}

/// A file and all it may include.
#[derive(Default)]
struct Closure {
    files: FxHashSet<FileId>,
    /// The names in view that their conditions ask for.
    asked: Vec<String>,
}

struct Walk<'f, 'a> {
    files: &'f Files<'a>,
    closures: Vec<Option<Rc<Closure>>>,
    in_view: FxHashSet<String>,
    of: FxHashMap<FileId, Vec<usize>>,
    found: Vec<Variant>,
    /// The files that are being gone through.
    open: Vec<FileId>,
}

impl Walk<'_, '_> {
    /// The file as it is after the macros of the table; `None` within itself.
    fn variant(&mut self, file: FileId, table: &Table) -> Option<usize> {
        if self.open.contains(&file) || self.open.len() > DEPTH {
            return None;
        }
        let given = self.given(file, table);
        let known = self.of.get(&file).map_or(&[][..], Vec::as_slice);
        let is_same = |found: &Variant| {
            let ours = given.iter().map(|known| &known.def);
            ours.eq(found.given.iter().map(|known| &known.def))
        };
        let same = known.iter().find(|at| self.found.get(**at).is_some_and(is_same));
        if let Some(found) = same {
            return Some(*found);
        }
        if let Some(&first) = known.first().filter(|_| known.len() >= MOST) {
            self.found.get_mut(first)?.stands_in = true;
            return Some(first);
        }
        self.open.push(file);
        let made = self.made(file, given);
        self.open.pop();
        let place = self.found.len();
        self.found.push(made);
        self.of.entry(file).or_default().push(place);
        Some(place)
    }

    fn made(&mut self, file: FileId, given: Vec<Known>) -> Variant {
        let mut variant = Variant {
            file,
            given,
            masked: None,
            includes: Vec::new(),
            dead_includes: Vec::new(),
            stands_in: false,
            effects: Vec::new(),
        };
        if !variant.given.is_empty() {
            let defines = self.defines(&variant, &[]);
            variant.masked = Some((self.files.mask)(file, &defines));
        }
        self.follow(&mut variant);
        if variant.includes.iter().any(|at| self.found.get(*at).is_some_and(|inner| inner.masked.is_some())) {
            // What it includes defines other macros than where that stands alone.
            let defines = self.defines(&variant, &variant.includes);
            variant.masked = Some((self.files.mask)(file, &defines));
            self.follow(&mut variant);
        }
        variant
    }

    /// Goes through a file's macros and includes in their order.
    fn follow(&mut self, variant: &mut Variant) {
        (variant.includes, variant.dead_includes, variant.effects) = Default::default();
        let files = self.files;
        let plain = files.plain.get(variant.file.0 as usize);
        let Some(masked) = variant.masked.as_ref().or(plain) else { return };
        let mut table = Table::default();
        for def in (files.defines)(variant.file).iter() {
            self.take(&mut table, variant.file, def);
        }
        table.extend(variant.given.iter().map(|known| (known.def.name.clone(), known.clone())));
        let in_view: Vec<MacroDef> =
            masked.macros.iter().filter(|def| self.in_view.contains(&def.name)).cloned().collect();
        let mut macros = in_view.into_iter().peekable();
        let edges = files.edges.get(variant.file.0 as usize).map_or(&[][..], Vec::as_slice);
        let includes: Vec<(u32, Presence, FileId)> = masked
            .includes
            .iter()
            .zip(edges)
            .filter_map(|(include, to)| Some((include.offset, include.presence, (*to)?)))
            .collect();
        let mut seen = FxHashSet::default();
        for (offset, presence, to) in includes {
            while let Some(def) = macros.next_if(|def| def.offset < offset) {
                self.take(&mut table, variant.file, &def);
                variant.effects.push(Known { file: variant.file, def });
            }
            if presence == Presence::Dead {
                variant.dead_includes.push(to);
                continue;
            }
            let Some(place) = self.variant(to, &table) else { continue };
            if variant.includes.contains(&place) {
                continue;
            }
            variant.includes.push(place);
            let effects = self.found.get(place).map(|inner| inner.effects.clone()).unwrap_or_default();
            // A file that was read before is guarded.
            let new: Vec<Known> = effects.into_iter().filter(|known| !seen.contains(&known.file)).collect();
            for known in &new {
                self.take(&mut table, known.file, &known.def);
            }
            seen.extend(new.iter().map(|known| known.file));
            variant.effects.extend(new);
        }
        for def in macros {
            variant.effects.push(Known { file: variant.file, def });
        }
    }

    /// As [`Defines::insert`].
    fn take(&self, table: &mut Table, file: FileId, def: &MacroDef) {
        if !self.in_view.contains(&def.name) {
            return;
        }
        match (def.presence, def.undef) {
            (Presence::Live, true) => drop(table.remove(&def.name)),
            (Presence::Live, false) => {
                let def = MacroDef { offset: 0, ..def.clone() };
                table.insert(def.name.clone(), Known { file, def });
            }
            (Presence::Kept | Presence::Dead, _) => {}
        }
    }

    /// Of the table, what the file and all it includes ask for; what these define themselves is not given.
    fn given(&mut self, file: FileId, table: &Table) -> Vec<Known> {
        if table.is_empty() {
            return Vec::new();
        }
        let closure = self.closure(file);
        // Not what a build file defines for all of them alike.
        let is_outside = |known: &Known| {
            !closure.files.contains(&known.file)
                && closure
                    .files
                    .iter()
                    .any(|file| (self.files.defines)(*file).get(&known.def.name) != Some(&known.def))
        };
        let mut queue: Vec<&str> = closure.asked.iter().map(String::as_str).collect();
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut given = Vec::new();
        while let Some(name) = queue.pop() {
            if !seen.insert(name) {
                continue;
            }
            if let Some(known) = table.get(name).filter(|known| is_outside(known)) {
                queue.extend(words(&known.def.body));
                given.push(known.clone());
            }
        }
        given.sort_by(|a, b| a.def.name.cmp(&b.def.name));
        given
    }

    /// What a variant of a file is masked with.
    fn defines(&self, variant: &Variant, includes: &[usize]) -> Defines {
        let mut all = (self.files.defines)(variant.file).clone();
        let mut order: Vec<usize> = Vec::new();
        let mut queue: Vec<usize> = includes.iter().rev().copied().collect();
        while let Some(at) = queue.pop() {
            if !order.contains(&at) && order.len() < 400 {
                order.push(at);
                queue.extend(self.found.get(at).into_iter().flat_map(|inner| &inner.includes));
            }
        }
        for inner in order.iter().rev().filter_map(|at| self.found.get(*at)) {
            let plain = self.files.plain.get(inner.file.0 as usize);
            for def in inner.masked.as_ref().or(plain).into_iter().flat_map(|masked| &masked.macros) {
                all.insert(def.clone());
            }
        }
        for known in &variant.given {
            all.insert(known.def.clone());
        }
        all
    }

    fn closure(&mut self, file: FileId) -> Rc<Closure> {
        let known = self.closures.get(file.0 as usize).cloned().flatten();
        known.unwrap_or_else(|| {
            let closure = Rc::new(self.closure_of(file));
            if let Some(slot) = self.closures.get_mut(file.0 as usize) {
                *slot = Some(closure.clone());
            }
            closure
        })
    }

    fn closure_of(&self, file: FileId) -> Closure {
        let mut closure = Closure { files: FxHashSet::from_iter([file]), asked: Vec::new() };
        let mut queue = vec![file];
        while let Some(next) = queue.pop() {
            let asked = self.files.plain.get(next.0 as usize).into_iter().flat_map(|masked| &masked.tested);
            closure.asked.extend(asked.filter(|name| self.in_view.contains(*name)).cloned());
            for to in self.files.edges.get(next.0 as usize).into_iter().flatten().flatten() {
                if closure.files.insert(*to) {
                    queue.push(*to);
                }
            }
        }
        closure.asked.sort_unstable();
        closure.asked.dedup();
        closure
    }
}

#[cfg(test)]
mod tests {
    use super::super::front::{DefinesByDirectory, load};
    use crate::source::{SourceFile, Sources};

    /// For each file read: its name, and the name and target of each alias in it.
    fn aliases(files: &[(&str, &str)], build: &[(&str, &str)]) -> Vec<String> {
        let mut sources = Sources::default();
        for (name, text) in files {
            sources.add(SourceFile::new(*name, format!("{text}\n__device__ int marker;\n")));
        }
        let mut defines = DefinesByDirectory::default();
        build.iter().for_each(|(directory, define)| defines.add(std::path::Path::new(directory), define));
        let read = load(&sources, &defines, &[], &[]);
        let told = read.iter().map(|parsed| {
            let includes: Vec<u32> = parsed.includes.iter().map(|file| file.0).collect();
            let of = parsed.unit.aliases.iter().map(|alias| format!("{:?}", alias.ty));
            let of = of.map(|ty| if ty.contains("size: 8") { "double" } else { "float" });
            let of: Vec<&str> = of.collect();
            format!("{} {} {includes:?}", sources.path(parsed.file).display(), of.join(" "))
        });
        told.collect()
    }

    const REAL: &str = "#ifdef WIDE\nusing real = double;\n#else\nusing real = float;\n#endif";

    #[test]
    fn a_header_is_read_once_for_each_set_of_answers() {
        let found = aliases(
            &[
                ("a.cu", "#define WIDE\n#include \"real.h\""),
                ("b.cu", "#include \"real.h\"\n#define WIDE"),
                ("c.cu", "#define OTHER\n#define WIDE\n#undef WIDE\n#include \"real.h\""),
                ("d.cu", "#define WIDE\n#include \"outer.h\""),
                ("outer.h", "#include \"real.h\""),
                ("real.h", REAL),
            ],
            &[],
        );
        let expected = [
            "a.cu  [5]",
            "b.cu  [6]",
            "c.cu  [6]",
            "d.cu  [4]",
            "outer.h  [5]",
            "real.h double []",
            "real.h float []",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_one_header_defines_another_asks_for() {
        let found = aliases(
            &[
                (
                    "a.cu",
                    "#include \"config.h\"\n#include \"real.h\"\n#if WIDE == 1\nusing own = double;\n#else\nusing own = float;\n#endif",
                ),
                ("config.h", "#ifndef CONFIG_H\n#define CONFIG_H\n#define WIDE 1\n#endif"),
                (
                    "real.h",
                    "#ifndef WIDE\n#define WIDE 0\n#endif\n#if WIDE\nusing real = double;\n#else\nusing real = float;\n#endif",
                ),
            ],
            &[],
        );
        assert_eq!(found, ["a.cu double [1, 2]", "config.h  []", "real.h double []"]);
    }

    #[test]
    fn what_a_build_file_defines_for_the_includer_decides() {
        let files = [
            ("a/a.cu", "#include \"../h/real.h\""),
            ("b/b.cu", "#include \"../h/real.h\""),
            ("h/real.h", REAL),
        ];
        let found = aliases(&files, &[("b", "WIDE")]);
        assert_eq!(found, ["a/a.cu  [2]", "b/b.cu  [3]", "h/real.h float []", "h/real.h double []"]);
    }

    #[test]
    fn files_that_include_one_another_end() {
        let found = aliases(
            &[
                ("a.cu", "#define WIDE\n#include \"x.h\""),
                ("x.h", &format!("#pragma once\n#include \"y.h\"\n{REAL}")),
                ("y.h", "#pragma once\n#include \"x.h\""),
            ],
            &[],
        );
        assert_eq!(found, ["a.cu  [1]", "x.h double [2]", "y.h  []"]);
    }
}
