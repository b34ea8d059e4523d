//! The front end over a whole run: every file masked, parsed and built, in parallel.
//!
//! Masking wants the macros of included files, and includes are known only after lexing; so each file is masked twice,
//! first alone, then with what its includes define. Masking runs at ten times the parser's speed. A file whose conditions
//! ask for what its includers define is read once for each set of answers, see `variants.rs`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::build::{self, Side};
use super::macros::{Defines, MacroDef};
use super::mask::{KernelHead, MaskOptions, Masked, mask};
use super::variants::{self, Variant};
use crate::ir::ast::{Gap, Unit};
use crate::source::include::{IncludeResolver, normalize};
use crate::source::{FileId, Sources, Span};

/// One file, read.
#[derive(Debug)]
pub struct Parsed {
    /// The file that all spans are in.
    pub file: FileId,
    pub unit: Unit,
    pub macros: Vec<MacroDef>,
    /// What it includes: places in the list of all that was read.
    pub includes: Vec<FileId>,
    /// What it would include in branches that are not compiled.
    pub dead_includes: Vec<FileId>,
    /// Kernels found by the lexer.
    pub heads: Vec<KernelHead>,
    pub dead: Vec<Range<u32>>,
}

impl Parsed {
    /// Nothing yet.
    fn of(file: FileId) -> Parsed {
        Parsed {
            file,
            unit: Unit::default(),
            macros: Vec::new(),
            includes: Vec::new(),
            dead_includes: Vec::new(),
            heads: Vec::new(),
            dead: Vec::new(),
        }
    }
}

/// What makes a file worth parsing on its own account.
const MARKERS: &[&str] = &[
    "__global__",
    "__device__",
    "__shared__",
    "__constant__",
    "threadIdx",
    "<<<",
    "cudaLaunch",
    "cudaMalloc",
    "AccessPolicyWindow",
    "cudaLimitPersistingL2CacheSize",
    "_KERNEL",
    "main",
];

/// The macros that a command line or a build file defines for the files of a directory.
#[derive(Debug, Default)]
pub struct DefinesByDirectory {
    everywhere: Defines,
    directories: FxHashMap<PathBuf, Defines>,
}

impl DefinesByDirectory {
    /// `everywhere` wins over what is added for a directory.
    pub fn new(everywhere: Defines) -> Self {
        DefinesByDirectory { everywhere, directories: FxHashMap::default() }
    }

    /// Adds `NAME` or `NAME=VALUE` for the files that lie directly in a directory.
    pub fn add(&mut self, directory: &Path, define: &str) {
        let name = define.split_once('=').map_or(define, |(name, _)| name);
        if self.everywhere.get(name).is_none() {
            let all = self.directories.entry(normalize(directory)).or_insert_with(|| self.everywhere.clone());
            all.define(define);
        }
    }

    fn of(&self, file: &Path) -> &Defines {
        let directory = file.parent().map(normalize);
        directory.and_then(|directory| self.directories.get(&directory)).unwrap_or(&self.everywhere)
    }
}

/// Reads all files, in their order; then those again that several includers see differently.
pub fn load(
    sources: &Sources,
    defines: &DefinesByDirectory,
    kernel_macros: &[String],
    include_dirs: &[PathBuf],
) -> Vec<Parsed> {
    let options = MaskOptions { kernel_macros: kernel_macros.to_vec() };
    let ids: Vec<FileId> = sources.ids().collect();
    let defines = |id: FileId| defines.of(sources.path(id));
    let mask = |id: FileId, defines: &Defines| mask(id, &sources.get(id).text, defines, &options);
    let first: Vec<Masked> = ids.par_iter().map(|&id| mask(id, defines(id))).collect();
    let resolver = IncludeResolver::new(sources, include_dirs);
    let edges: Vec<Vec<Option<FileId>>> = ids
        .iter()
        .zip(&first)
        .map(|(&id, masked)| {
            let path = normalize(sources.path(id));
            let directory = path.parent().unwrap_or(Path::new(""));
            masked.includes.iter().map(|include| resolver.resolve(directory, &include.path)).collect()
        })
        .collect();
    let wanted = wanted(sources, &edges);
    let again: Vec<Option<Masked>> = ids
        .par_iter()
        .map(|&id| {
            let includes = edges.get(id.0 as usize).is_some_and(|edges| edges.iter().any(Option::is_some));
            let differs = includes && wanted.contains(&id);
            differs.then(|| mask(id, &visible(defines(id), &edges, &first, id)))
        })
        .collect();
    let plain: Vec<Masked> =
        first.into_iter().zip(again).map(|(alone, again)| again.unwrap_or(alone)).collect();
    let files = variants::Files { plain: &plain, edges: &edges, defines: &defines, mask: &mask };
    let variants = variants::variants(&files);
    views(&variants, &plain, &edges)
        .into_par_iter()
        .map(|view| {
            let View { file, includes, dead_includes, stands_in, masked } = view;
            let mut parsed = Parsed { includes, dead_includes, ..Parsed::of(file) };
            if wanted.contains(&file) {
                parse(&mut parsed, &sources.get(file).text, masked);
                // As if the first lines of the file defined them.
                let mut macros: Vec<MacroDef> = defines(file).iter().cloned().collect();
                macros.sort_by(|a, b| a.name.cmp(&b.name));
                parsed.macros.splice(0..0, macros);
            }
            parsed.unit.gaps.extend(stands_in.then(|| {
                Gap {
                    span: Span::new(file, 0, 0),
                    reason:
                        "too many files include it with different macros; not all of these were told apart"
                            .to_owned(),
                }
            }));
            parsed
        })
        .collect()
}

/// A file as it is to be parsed.
struct View<'a> {
    file: FileId,
    masked: &'a Masked,
    includes: Vec<FileId>,
    dead_includes: Vec<FileId>,
    stands_in: bool,
}

/// One of each file, in their order, and then the others that differ.
fn views<'a>(variants: &'a [Variant], plain: &'a [Masked], edges: &[Vec<Option<FileId>>]) -> Vec<View<'a>> {
    let mut views: Vec<View> = (0..)
        .map(FileId)
        .zip(plain.iter().zip(edges))
        .map(|(file, (masked, edges))| {
            let includes = edges.iter().flatten().copied().collect();
            View { file, masked, includes, dead_includes: Vec::new(), stands_in: false }
        })
        .collect();
    let mut taken = FxHashSet::default();
    let mut next = plain.len() as u32;
    let mut place = |file: FileId| {
        if taken.insert(file) {
            return file;
        }
        next += 1;
        FileId(next - 1)
    };
    let places: Vec<FileId> = variants.iter().map(|variant| place(variant.file)).collect();
    for (variant, &place) in variants.iter().zip(&places) {
        let at = variant.file.0 as usize;
        let Some(masked) = variant.masked.as_ref().or_else(|| plain.get(at)) else { continue };
        let includes = variant.includes.iter().filter_map(|inner| places.get(*inner).copied()).collect();
        let view = View {
            file: variant.file,
            masked,
            includes,
            dead_includes: variant.dead_includes.clone(),
            stands_in: variant.stands_in,
        };
        match views.get_mut(place.0 as usize) {
            Some(first) => *first = view,
            None => views.push(view),
        }
    }
    views
}

/// The files that are worth parsing, and what they include.
fn wanted(sources: &Sources, edges: &[Vec<Option<FileId>>]) -> FxHashSet<FileId> {
    let mut wanted: FxHashSet<FileId> =
        sources.ids().filter(|&id| is_marked(&sources.get(id).text)).collect();
    let mut queue: Vec<FileId> = wanted.iter().copied().collect();
    while let Some(id) = queue.pop() {
        for &next in edges.get(id.0 as usize).into_iter().flatten().flatten() {
            if wanted.insert(next) {
                queue.push(next);
            }
        }
    }
    wanted
}

fn is_marked(text: &str) -> bool {
    MARKERS.iter().any(|marker| text.contains(marker))
}

/// The macros of everything that a file includes, nearest last.
fn visible(defines: &Defines, edges: &[Vec<Option<FileId>>], first: &[Masked], root: FileId) -> Defines {
    let mut order = Vec::new();
    let mut seen = FxHashSet::from_iter([root]);
    let mut queue = vec![root];
    while let Some(id) = queue.pop() {
        for &next in edges.get(id.0 as usize).into_iter().flatten().flatten() {
            if seen.insert(next) && order.len() < 400 {
                order.push(next);
                queue.push(next);
            }
        }
    }
    let mut all = defines.clone();
    for id in order.iter().rev() {
        for item in first.get(id.0 as usize).into_iter().flat_map(|masked| &masked.macros) {
            all.insert(item.clone());
        }
    }
    all
}

/// Parses one masked file; kernels that came out unclean are parsed again alone.
fn parse(parsed: &mut Parsed, text: &str, masked: &Masked) {
    let id = parsed.file;
    (parsed.heads, parsed.dead) = (masked.kernels.clone(), masked.dead.clone());
    let side = Side::of(masked);
    parsed.unit = build::parse(id, text, &super::mask_types::settled(&masked.text), &side);
    for head in &masked.kernels {
        if is_whole(&parsed.unit, head) {
            continue;
        }
        let range = super::mask::island(masked, head);
        let alone = super::mask_types::settled(&super::mask::isolate(masked, &range));
        let island = build::parse(id, text, &alone, &side);
        let found = island.functions.into_iter().find(|function| {
            function.name.as_str() == head.name
                && function.body_span.is_some_and(|body| body.end.abs_diff(head.body.end) <= 1)
        });
        match found {
            Some(function) => {
                parsed.unit.functions.retain(|old| old.name_span != function.name_span);
                parsed.unit.functions.push(function);
            }
            None => parsed.unit.gaps.push(Gap {
                span: Span::new(id, head.name_span.start as usize, head.name_span.end as usize),
                reason: format!("kernel `{}` could not be parsed", head.name),
            }),
        }
    }
    parsed.unit.gaps.extend(masked.gaps.iter().cloned());
    parsed.macros = masked.macros.clone();
}

/// Is the kernel in the unit, with its body where the lexer says?
fn is_whole(unit: &Unit, head: &KernelHead) -> bool {
    unit.functions.iter().any(|function| {
        function.name_span.start == head.name_span.start
            && function.body_span.is_some_and(|body| body.end.abs_diff(head.body.end) <= 1)
    })
}
