//! The analysis behind one function: sources and settings in, raw findings out.

use std::path::PathBuf;

use super::super::ir::ast::Gap;
use super::super::source::{FileId, Sources};
use super::finding::Finding;
use super::rule::Rule;

/// A project as read from disk; nothing below reads files.
#[derive(Debug, Default)]
pub struct Input {
    /// All files read, context included, in the order of their paths.
    pub sources: Sources,
    /// The files whose findings are reported; the others only inform.
    pub checked: Vec<FileId>,
    pub settings: Settings,
}

/// What the configuration tells the analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// `NAME` or `NAME=VALUE`, as for a compiler's `-D`.
    pub defines: Vec<(String, Option<String>)>,
    /// Where `#include "…"` is also looked for; in the form of the paths in `Sources`.
    pub include_dirs: Vec<PathBuf>,
    /// Macros that mark a kernel as `__global__` does.
    pub kernel_macros: Vec<String>,
    /// Launch shapes of kernels whose launches are not in the project.
    pub shapes: Vec<KernelShape>,
    /// Rules may report what is eligible, not only what pays.
    pub pedantic: bool,
}

/// A launch shape declared in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelShape {
    /// A glob over kernel names: `reduce*`.
    pub name: String,
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Blocks in x, y, z.
    pub grid: Option<[u64; 3]>,
}

#[derive(Debug, Default)]
pub struct Checked {
    /// Raw: before suppression, selection and levels.
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
    pub kernels: usize,
    pub accesses: usize,
}

/// Analyses the project and runs the rules over it.
pub fn check(_input: &Input, _rules: &[&'static dyn Rule]) -> Checked {
    Checked::default()
}
