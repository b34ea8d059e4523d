//! The front end over a whole run: every file masked, parsed and built, in parallel.
//!
//! Masking wants the macros of included files, and includes are known only after lexing; so each file is masked twice,
//! first alone, then with what its includes define. Masking runs at ten times the parser's speed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::build::{self, Side};
use super::macros::{Defines, MacroDef};
use super::mask::{KernelHead, MaskOptions, Masked, mask};
use crate::ir::ast::{Gap, Unit};
use crate::source::include::{IncludeResolver, normalize};
use crate::source::{FileId, Sources, Span};

/// One file, read.
#[derive(Debug, Default)]
pub struct Parsed {
    pub unit: Unit,
    pub macros: Vec<MacroDef>,
    pub includes: Vec<String>,
    /// Kernels found by the lexer.
    pub heads: Vec<KernelHead>,
    pub dead: Vec<Range<u32>>,
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

pub fn load(
    sources: &Sources,
    defines: &DefinesByDirectory,
    kernel_macros: &[String],
    include_dirs: &[PathBuf],
) -> Vec<Parsed> {
    let options = MaskOptions { kernel_macros: kernel_macros.to_vec() };
    let ids: Vec<FileId> = sources.ids().collect();
    let first: Vec<Masked> = ids
        .par_iter()
        .map(|&id| mask(id, &sources.get(id).text, defines.of(sources.path(id)), &options))
        .collect();
    let resolver = IncludeResolver::new(sources, include_dirs);
    let edges: Vec<Vec<FileId>> = ids
        .iter()
        .map(|&id| {
            let path = normalize(sources.path(id));
            let directory = path.parent().unwrap_or(Path::new(""));
            let includes = first.get(id.0 as usize).map_or(&[][..], |masked| &masked.includes);
            includes.iter().filter_map(|include| resolver.resolve(directory, &include.path)).collect()
        })
        .collect();
    let mut wanted: FxHashSet<FileId> =
        ids.iter().copied().filter(|&id| is_marked(&sources.get(id).text)).collect();
    let mut queue: Vec<FileId> = wanted.iter().copied().collect();
    while let Some(id) = queue.pop() {
        for &next in edges.get(id.0 as usize).into_iter().flatten() {
            if wanted.insert(next) {
                queue.push(next);
            }
        }
    }
    ids.par_iter()
        .map(|&id| {
            let Some(alone) = first.get(id.0 as usize).filter(|_| wanted.contains(&id)) else {
                return Parsed::default();
            };
            let text = &sources.get(id).text;
            let given = defines.of(sources.path(id));
            let includes = edges.get(id.0 as usize).is_some_and(|edges| !edges.is_empty());
            let mut parsed = if includes {
                let defines = visible(given, &edges, &first, id);
                parse(id, text, &mask(id, text, &defines, &options))
            } else {
                parse(id, text, alone)
            };
            // As if the first lines of the file defined them.
            let mut macros: Vec<MacroDef> = given.iter().cloned().collect();
            macros.sort_by(|a, b| a.name.cmp(&b.name));
            parsed.macros.splice(0..0, macros);
            parsed
        })
        .collect()
}

fn is_marked(text: &str) -> bool {
    MARKERS.iter().any(|marker| text.contains(marker))
}

/// The macros of everything that a file includes, nearest last.
fn visible(defines: &Defines, edges: &[Vec<FileId>], first: &[Masked], root: FileId) -> Defines {
    let mut order = Vec::new();
    let mut seen = FxHashSet::from_iter([root]);
    let mut queue = vec![root];
    while let Some(id) = queue.pop() {
        for &next in edges.get(id.0 as usize).into_iter().flatten() {
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
fn parse(id: FileId, text: &str, masked: &Masked) -> Parsed {
    let side = Side::of(masked);
    let unit = build::parse(id, text, &super::mask_types::settled(&masked.text), &side);
    let mut parsed = Parsed {
        unit,
        includes: masked.includes.iter().map(|include| include.path.clone()).collect(),
        heads: masked.kernels.clone(),
        dead: masked.dead.clone(),
        macros: Vec::new(),
    };
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
    parsed
}

/// Is the kernel in the unit, with its body where the lexer says?
fn is_whole(unit: &Unit, head: &KernelHead) -> bool {
    unit.functions.iter().any(|function| {
        function.name_span.start == head.name_span.start
            && function.body_span.is_some_and(|body| body.end.abs_diff(head.body.end) <= 1)
    })
}
