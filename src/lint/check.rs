//! The analysis behind one function: sources and settings in, raw findings out.

use std::path::PathBuf;

use super::finding::Finding;
use super::rule::{Context, Rule};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::limits;
use crate::ir::ast::Gap;
use crate::ir::facts::KernelFact;
use crate::launch::persist;
use crate::launch::roots;
use crate::launch::shape::Declared;
use crate::lower::macros::MacroDef;
use crate::lower::project::{FileUnit, Project};
use crate::source::{FileId, Sources};
use crate::syntax::front;
use crate::syntax::macros::Defines;

/// A project as read from disk; nothing below reads files.
#[derive(Debug, Default)]
pub struct Input {
    /// All files read, context included, in the order of their paths.
    pub sources: Sources,
    /// The files whose findings are reported; the others only inform.
    pub checked: Vec<FileId>,
    pub settings: Settings,
    /// What a build file defines for the files of a directory: `NAME` or `NAME=VALUE`, as `-D` takes it.
    pub build_defines: Vec<(PathBuf, Vec<String>)>,
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
    /// What `verify` launches kernels with.
    pub inputs: Vec<KernelInputs>,
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

/// What a kernel is launched with, as far as the configuration says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelInputs {
    /// A glob over kernel names.
    pub name: String,
    pub block: Option<[u32; 3]>,
    pub grid: Option<[u64; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: Option<u32>,
    /// Scalars by parameter name; the bits of an `f64`, which has no equality.
    pub args: Vec<(String, u64)>,
    /// Bytes of buffers by parameter name.
    pub sizes: Vec<(String, u64)>,
}

#[derive(Debug, Default)]
pub struct Checked {
    /// Raw: before suppression, selection and levels.
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
    pub kernels: usize,
    pub accesses: usize,
}

/// What the analysis knows of a project.
#[derive(Default)]
pub struct Analysis {
    pub project: Project,
    pub kernels: Vec<KernelFact>,
    pub gaps: Vec<Gap>,
}

/// Reads and executes the whole project, on threads whose stacks suit the executor.
pub fn analyze(input: &Input) -> Analysis {
    match rayon::ThreadPoolBuilder::new()
        .num_threads(rayon::current_num_threads())
        .stack_size(limits::STACK_BYTES)
        .build()
    {
        Ok(pool) => pool.install(|| analyze_here(input)),
        Err(_) => analyze_here(input),
    }
}

fn analyze_here(input: &Input) -> Analysis {
    let settings = &input.settings;
    let mut defines = Defines::default();
    for (name, value) in &settings.defines {
        match value {
            Some(value) => defines.define(&format!("{name}={value}")),
            None => defines.define(name),
        }
    }
    let mut defines = front::DefinesByDirectory::new(defines);
    for (directory, list) in &input.build_defines {
        list.iter().for_each(|define| defines.add(directory, define));
    }
    let parsed = front::load(&input.sources, &defines, &settings.kernel_macros, &settings.include_dirs);
    let mut gaps = Vec::new();
    let files = parsed
        .into_iter()
        .map(|parsed| {
            gaps.extend(parsed.unit.gaps.iter().cloned());
            FileUnit {
                file: parsed.file,
                unit: parsed.unit,
                macros: parsed.macros.into_iter().filter_map(MacroDef::from_front).collect(),
                includes: parsed.includes,
                dead_includes: parsed.dead_includes,
            }
        })
        .collect();
    let project = Project::new(&input.sources, files);
    let declared =
        Declared::new(settings.shapes.iter().map(|shape| (shape.name.as_str(), shape.block, shape.grid)));
    let kernels = roots::analyze(&project, &input.sources, &declared);
    Analysis { project, kernels, gaps }
}

/// Analyses the project and runs the rules over it.
pub fn check(input: &Input, rules: &[&'static dyn Rule]) -> Checked {
    let analysis = analyze(input);
    let persisting = persist::facts(&analysis.project, &input.sources);
    let cx = Context {
        sources: &input.sources,
        kernels: &analysis.kernels,
        project: &analysis.project,
        persisting: &persisting,
        pedantic: input.settings.pedantic,
    };
    let mut findings: Vec<Finding> = Vec::new();
    for rule in rules {
        rule.check(&cx, &mut findings);
    }
    let mut findings = fold(&input.sources, findings);
    let checked: FxHashSet<FileId> = input.checked.iter().copied().collect();
    findings.retain(|finding| checked.contains(&finding.span.file));
    let own = || analysis.kernels.iter().filter(|kernel| checked.contains(&kernel.name_span.file));
    Checked {
        findings,
        accesses: own().map(|kernel| kernel.accesses.len()).sum(),
        kernels: own().map(|kernel| kernel.name_span).collect::<FxHashSet<_>>().len(),
        gaps: analysis.gaps,
    }
}

/// What rules say below their level is said once for all accesses of a line that it holds for alike.
fn fold(sources: &Sources, findings: Vec<Finding>) -> Vec<Finding> {
    let mut folded: Vec<(Finding, Vec<String>)> = Vec::new();
    let mut first = FxHashMap::default();
    for finding in findings {
        if !finding.is_lowered() {
            folded.push((finding, Vec::new()));
            continue;
        }
        let (line, kernel, label) =
            (sources.line(finding.span), finding.kernel.clone(), finding.label.clone());
        let key = (finding.rule.name, finding.span.file, line, kernel, finding.numbers.operation, label);
        let place = *first.entry(key).or_insert(folded.len());
        match folded.get_mut(place) {
            Some((_, others)) => others.push(finding.access_text),
            None => folded.push((finding, Vec::new())),
        }
    }
    let with_others = |(mut finding, mut others): (Finding, Vec<String>)| {
        others.retain(|other| *other != finding.access_text);
        others.dedup();
        if !others.is_empty() {
            let list: Vec<String> = others.iter().map(|other| format!("`{other}`")).collect();
            finding.notes.push(format!("the same holds on this line for {}", list.join(", ")));
        }
        finding
    };
    folded.into_iter().map(with_others).collect()
}
