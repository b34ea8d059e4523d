//! From what the analysis knows of a kernel in a launch to a job for the device.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::inputs::{Known, Types};
use super::job::{Direction, Job, Launch, Prediction, Space};
use super::slice::{Slicer, has_dynamic_shared};
use crate::ir::ast::{FunctionDef, Unit};
use crate::ir::facts::{AccessFact, Confidence, KernelFact, MemorySpace, Operation};
use crate::source::{Edit, FileId, SourceFile, Sources, Span};

/// What the user says about a kernel's inputs; the rest is made plausibly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: Option<u32>,
    /// Scalars by parameter name.
    pub values: BTreeMap<String, f64>,
    /// Bytes of buffers by parameter name.
    pub extents: BTreeMap<String, u64>,
    /// Integers that nothing else is known of: sizes, pitches, counts; [`SIZES`] from the first on where `None`.
    pub size: Option<u32>,
}

/// Sizes to try, one after another, while a kernel leaves its buffers: products of several may outgrow them.
pub const SIZES: [u32; 3] = [1024, 128, 32];

/// Dynamic shared memory where the launch does not tell: the most that needs no attribute on any device.
const DYNAMIC_SHARED_BYTES: u32 = 32 << 10;
/// Blocks of a launch whose grid is not known, per axis that the block uses.
const GRID: u32 = 8;
/// No axis of a grid is launched longer: the cost of a request does not change with it.
const MOST_BLOCKS: [u32; 3] = [64, 16, 8];

/// Makes jobs from the kernels of one project.
pub struct Planner<'a> {
    sources: &'a Sources,
    slicer: Slicer<'a>,
    types: Types<'a>,
    kernels: FxHashMap<Span, &'a FunctionDef>,
    pub defines: Vec<String>,
    pub include_dirs: Vec<String>,
}

impl<'a> Planner<'a> {
    /// `macros` are object-like definitions: name and body.
    pub fn new<'m>(
        sources: &'a Sources,
        units: impl IntoIterator<Item = &'a Unit> + Clone,
        macros: impl IntoIterator<Item = (&'m str, &'m str)>,
    ) -> Planner<'a> {
        let mut types = Types::of(units.clone());
        for (name, body) in macros {
            types.define(name, body);
        }
        let functions = units.into_iter().flat_map(|unit| &unit.functions);
        let kernels = functions.filter(|f| f.qualifiers.kernel && f.body.is_some());
        let kernels = kernels.map(|function| (function.name_span, function.as_ref())).collect();
        let slicer = Slicer::new(sources);
        Planner { sources, slicer, types, kernels, defines: Vec::new(), include_dirs: Vec::new() }
    }

    /// The job that confronts the accesses `wanted` (indices into [`KernelFact::accesses`], which become the
    /// predictions' ids) with a device; `edits` are a fix to time. The error says what cannot be made.
    pub fn job(
        &self,
        kernel: &KernelFact,
        wanted: &[usize],
        given: &Given,
        edits: &[Edit],
    ) -> Result<Job, String> {
        let file = kernel.name_span.file;
        let source = self.slicer.slice(file, &kernel.name)?;
        let definition =
            self.kernels.get(&kernel.name_span).ok_or("the kernel's parameters are not known")?;
        let known = |name: &str| Known {
            value: given.values.get(name).copied().or_else(|| {
                kernel.params.iter().find(|param| param.name == name).and_then(|param| param.value)
            }),
            extent_bytes: given.extents.get(name).copied(),
            index_limit: None,
        };
        let fixed_source =
            if edits.is_empty() { None } else { Some(self.fixed(file, &kernel.name, edits)?) };
        let predictions = wanted.iter().filter_map(|&index| {
            kernel.accesses.get(index).and_then(|access| self.prediction(index as u64, access))
        });
        Ok(Job {
            kernel: kernel.name.clone(),
            launch: launch(kernel, given, &source),
            args: self.types.arguments(definition, &kernel.name, given.size.unwrap_or(SIZES[0]), &known)?,
            predictions: predictions.collect(),
            whole_file: Some(self.sources.get(file).text.clone()),
            fixed_source,
            defines: self.defines.clone(),
            include_dirs: self.include_dirs(file),
            source,
            record: false,
        })
    }

    /// What the analysis says of an access; `None` for constant memory, which no counter covers.
    pub fn prediction(&self, id: u64, access: &AccessFact) -> Option<Prediction> {
        let space = match access.space {
            MemorySpace::Global => Space::Global,
            MemorySpace::Shared => Space::Shared,
            MemorySpace::Local => Space::Local,
            MemorySpace::Constant => return None,
        };
        let source = self.sources.get(access.span.file);
        let line = source.line(access.span.start);
        let column = access.span.start.saturating_sub(source.line_range(line).start as u32) + 1;
        let units = access.request.as_ref().map(|request| request.units);
        let ideal = access.request.as_ref().map(|request| request.ideal);
        let shared = space == Space::Shared;
        Some(Prediction {
            id,
            file: super::slice::line_path(&source.path),
            line,
            end_line: source.line(access.span.end.saturating_sub(1)),
            column: Some(column),
            expression: Some(source.slice(access.span).to_owned()),
            space,
            operation: match access.operation {
                Operation::Load => Direction::Load,
                Operation::Store => Direction::Store,
                Operation::Atomic => Direction::Atomic,
            },
            access_bytes: u32::try_from(access.width.0).unwrap_or(0),
            sectors: units.filter(|_| !shared),
            ideal_sectors: ideal.filter(|_| !shared),
            wavefronts: units.filter(|_| shared),
            ideal_wavefronts: ideal.filter(|_| shared),
            assumed: (access.confidence == Confidence::Assumed).then(|| access.assumptions.join("; ")),
        })
    }

    fn include_dirs(&self, file: FileId) -> Vec<String> {
        let beside = self.sources.path(file).parent().map(|folder| folder.display().to_string());
        let beside = beside.filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned());
        std::iter::once(beside).chain(self.include_dirs.iter().cloned()).collect()
    }

    /// The slice of the project with edits applied.
    fn fixed(&self, file: FileId, kernel: &str, edits: &[Edit]) -> Result<String, String> {
        let mut sources = Sources::default();
        for id in self.sources.ids() {
            let mut here: Vec<&Edit> = edits.iter().filter(|edit| edit.span.file == id).collect();
            here.sort_by_key(|edit| std::cmp::Reverse(edit.span));
            let mut text = self.sources.get(id).text.clone();
            for edit in here {
                let range = edit.span.start as usize..edit.span.end as usize;
                if text.get(range.clone()).is_none() {
                    return Err("the fix does not fit the file".to_owned());
                }
                text.replace_range(range, &edit.replacement);
            }
            sources.add(SourceFile::new(self.sources.path(id), text));
        }
        Slicer::new(&sources).slice(file, kernel)
    }
}

/// The launch that is given, else the one the analysis saw, else a small one; long grids are cut.
fn launch(kernel: &KernelFact, given: &Given, source: &str) -> Launch {
    let block = given.block.unwrap_or(kernel.shape.block);
    let seen = kernel.shape.grid.map(|grid| grid.map(|extent| u32::try_from(extent).unwrap_or(u32::MAX)));
    let plain = block.map(|extent| if extent > 1 { GRID } else { 1 });
    let mut grid = given.grid.or(seen).unwrap_or(plain);
    if given.grid.is_none() {
        for (extent, most) in grid.iter_mut().zip(MOST_BLOCKS) {
            *extent = (*extent).clamp(1, most);
        }
    }
    let dynamic = if has_dynamic_shared(source) { DYNAMIC_SHARED_BYTES } else { 0 };
    let shared_bytes = given.shared_bytes.or(kernel.shared_bytes).unwrap_or(dynamic);
    Launch { grid, block, shared_bytes }
}
