//! From what the analysis knows of a kernel in a launch to a job for the device.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use super::closure::{self, Closure};
use super::exact::Exact;
use super::host::{HostCode, Passed};
use super::inputs::{Known, Sizes, Types, written};
use super::job::{Arg, Direction, Fixed, Job, Launch, Prediction, Space};
use super::slice::{Functor, Slicer, has_dynamic_shared};
use crate::ir::ast::{ExprKind, FunctionDef, Name, Type, Unit, VarDecl};
use crate::ir::facts::{AccessFact, Confidence, KernelFact, MemorySpace, Operation, ParamFact};
use crate::ir::walk;
use crate::lint::fix;
use crate::memory::shared;
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
    /// Integers that nothing else is known of: sizes, pitches, counts; the first of [`SIZES`] where `None`.
    pub sizes: Option<Sizes>,
    /// What numbers of the launch are cut to.
    pub most: Option<f64>,
}

/// A fix to time, beside the kernel as it is and apart from other fixes.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub title: String,
    /// The rule that proposes it.
    pub rule: String,
    /// Indices into [`KernelFact::accesses`] of the findings that propose it.
    pub accesses: Vec<usize>,
    /// In any order.
    pub edits: Vec<Edit>,
    /// It is to save requests to global memory, so they are counted with it, too.
    pub saves_requests: bool,
}

/// Sizes to try, one after another, while a kernel leaves its buffers or takes too long: products of several may outgrow them.
pub const SIZES: [Sizes; 2] = [Sizes::Equal(1024), Sizes::Equal(64)];
/// What the launch's own numbers are cut to, should that not help.
pub const MOST: f64 = 256.0;
/// Sizes to try, one after another, while no access of a kernel is executed: tiles that are cut, a size far above the others.
pub const OTHER_SIZES: [Sizes; 3] = [Sizes::Equal(1000), Sizes::FirstLarge, Sizes::LastLarge];

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
    /// What a build file defines for the files of a directory.
    pub build_defines: Vec<(PathBuf, Vec<String>)>,
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
        let functions = units.clone().into_iter().flat_map(|unit| &unit.functions);
        let kernels = functions.filter(|f| f.qualifiers.kernel && f.body.is_some());
        let kernels = kernels.map(|function| (function.name_span, function.as_ref())).collect();
        let slicer = Slicer::new(sources).reading(units);
        let (defines, build_defines, include_dirs) = (Vec::new(), Vec::new(), Vec::new());
        Planner { sources, slicer, types, kernels, defines, build_defines, include_dirs }
    }

    /// The job that confronts the accesses `wanted` (indices into [`KernelFact::accesses`], which become the
    /// predictions' ids) with a device and times `proposals`; `host` knows what launches pass. The error says what
    /// cannot be made.
    pub fn job(
        &self,
        kernel: &KernelFact,
        wanted: &[usize],
        given: &Given,
        proposals: &[Proposal],
        host: &HostCode,
    ) -> Result<Job, String> {
        let file = kernel.name_span.file;
        let definition =
            self.kernels.get(&kernel.name_span).ok_or("the kernel's parameters are not known")?;
        let width = given.block.unwrap_or(kernel.shape.block)[0];
        let closures = closure::closures(kernel, host, self.sources, given.most)?;
        let functors: Vec<Functor> = closures.iter().flat_map(|(_, closure)| closure.functors()).collect();
        let (name, made) =
            self.types.instance(definition, &with_classes(definition, &kernel.name, &closures), width);
        if let Some(callable) = made_up_callable(definition, &made) {
            return Err(format!(
                "`{callable}` is a lambda's type or another that no launch names, and the kernel calls it"
            ));
        }
        let source = self.slicer.slice(file, kernel.seen_from, &name, &functors)?;
        let mut passed: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
        let mut several: Vec<&str> = Vec::new();
        let params = parameters(kernel);
        for (place, (name, value)) in params.iter().enumerate() {
            let is_told = value.is_some() || given.values.contains_key(name);
            let is_pointer = kernel.params.get(place).is_some_and(|param| param.is_pointer);
            if let Some(fact) = kernel.params.get(place).and_then(|param| param.closure.as_ref()) {
                if host.changes(fact) {
                    several.push(name);
                }
                continue;
            }
            let fields = kernel.params.get(place).map_or(&[][..], |param| &param.fields);
            if fields.iter().any(Option::is_some) {
                passed.insert(name, fields.to_vec());
                continue;
            }
            let Some(launch) = kernel.shape.span.filter(|_| !is_told && !is_pointer) else { continue };
            match host.passed(launch, place) {
                Passed::Fields(fields) => {
                    passed.insert(name, fields.into_iter().map(Some).collect());
                }
                Passed::Several => several.push(name),
                Passed::Unknown => {}
            }
        }
        let known = |name: &str| Known {
            value: given.values.get(name).copied().or_else(|| {
                let value = params.iter().find(|(param, _)| param == name).and_then(|(_, value)| *value);
                value.map(|value| given.most.map_or(value, |most| value.min(most)))
            }),
            fields: passed.get(name).cloned().unwrap_or_default(),
            extent_bytes: given.extents.get(name).copied(),
            index_limit: None,
        };
        let fixes = proposals.iter();
        let fixes = fixes.map(|proposal| self.fixed(file, kernel.seen_from, &name, &functors, proposal));
        let all = kernel.accesses.iter().enumerate().filter_map(|(index, access)| {
            let prediction = self.prediction(index as u64, access)?;
            let merged_with = self.merged_with(kernel, access);
            Some(Prediction { twins: self.twins(kernel, access), merged_with, ..prediction })
        });
        let (mut predictions, others): (Vec<Prediction>, Vec<Prediction>) =
            all.partition(|prediction| wanted.contains(&(prediction.id as usize)));
        let place = |prediction: &Prediction| wanted.iter().position(|&id| id as u64 == prediction.id);
        predictions.sort_by_key(place);
        if !several.is_empty() {
            // A number for the launches that were seen is an average over their values.
            let shaped = |prediction: &&mut Prediction| {
                let access = kernel.accesses.get(prediction.id as usize);
                access.is_some_and(|access| access.confidence == Confidence::Shaped)
            };
            for prediction in predictions.iter_mut().filter(shaped) {
                prediction.assumed =
                    Some(format!("the values of `{}`, which change between launches", several.join("`, `")));
            }
        }
        if !made.is_empty() {
            for prediction in &mut predictions {
                let assumed = prediction.assumed.take().filter(|assumed| !assumed.is_empty());
                let here =
                    format!("template arguments that no launch gives, made up here as {}", made.join(", "));
                prediction.assumed =
                    Some(assumed.map_or(here.clone(), |assumed| format!("{assumed}; {here}")));
            }
        }
        Ok(Job {
            args: self.types.arguments(
                definition,
                &name,
                given.sizes.unwrap_or(SIZES[0]),
                &closures,
                &known,
            )?,
            launch: launch(kernel, given, &source),
            predictions,
            others,
            params: params.iter().map(|(name, _)| name.clone()).collect(),
            made_up: made,
            // The class of a lambda is in the slice alone.
            whole_file: functors
                .is_empty()
                .then(|| self.sources.get(kernel.seen_from.unwrap_or(file)).text.clone()),
            fixes: fixes.collect::<Result<_, _>>()?,
            defines: self.defines_of(kernel.seen_from.unwrap_or(file)),
            include_dirs: self.include_dirs(kernel.seen_from.unwrap_or(file)),
            source,
            kernel: name,
            ..Job::default()
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
            profiled: profiled(access),
            assumed: (access.confidence == Confidence::Assumed).then(|| access.assumptions.join("; ")),
            here: None,
            twins: Vec::new(),
            merged_with: Vec::new(),
            is_invariant: access.operation == Operation::Load
                && access.flow.loops.last().is_some_and(|inner| access.flow.invariant_in.contains(inner)),
            is_repeated: access.is_repeated,
            by_data: access.flow.guarded_by_data,
            calls: access.calls.iter().map(|call| self.file_and_line(*call)).collect(),
        })
    }

    fn file_and_line(&self, span: Span) -> (String, u32) {
        (super::slice::line_path(self.sources.path(span.file)), self.sources.line(span))
    }

    /// The other lines of the file where the kernel accesses the same address in the same direction: the two sides of a branch.
    fn twins(&self, kernel: &KernelFact, access: &AccessFact) -> Vec<u32> {
        self.lines_of_others(kernel, access, |other| {
            other.width == access.width && other.flow.address == access.flow.address
        })
    }

    /// The other lines of the file with parts of the wide instruction that an access becomes part of, or may.
    fn merged_with(&self, kernel: &KernelFact, access: &AccessFact) -> Vec<u32> {
        let is_part =
            |access: &AccessFact| access.space == MemorySpace::Shared && access.width > access.bytes;
        let guard = access.flow.guard;
        if is_part(access) {
            return self.lines_of_others(kernel, access, |other| {
                is_part(other) && other.width == access.width && other.flow.guard == guard
            });
        }
        let Some(own) = piece(access) else { return Vec::new() };
        self.lines_of_others(kernel, access, |other| piece(other) == Some(own) && other.flow.guard == guard)
    }

    /// Lines with accesses to the same array in the same direction for which `fits` holds.
    fn lines_of_others(
        &self,
        kernel: &KernelFact,
        access: &AccessFact,
        fits: impl Fn(&AccessFact) -> bool,
    ) -> Vec<u32> {
        let line = |access: &AccessFact| self.sources.line(access.span);
        let others = kernel.accesses.iter().filter(|other| {
            other.span.file == access.span.file
                && other.base == access.base
                && other.operation == access.operation
                && line(other) != line(access)
                && fits(other)
        });
        let mut lines: Vec<u32> = others.map(line).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Asks what the analysis says of the launch of `job` with `args`; the number of the question. `None` where the launch cannot
    /// be written down.
    pub fn ask(
        &self,
        exact: &mut Exact,
        kernel: &KernelFact,
        job: &Job,
        args: &[Arg],
        host: &HostCode,
    ) -> Option<usize> {
        let definition = self.kernels.get(&kernel.name_span)?;
        let closures = closure::closures(kernel, host, self.sources, None).ok()?;
        let spelt = self.types.spelt(definition, &job.kernel, args, &closures, self.sources);
        Some(exact.add(kernel, &before_classes(&job.kernel), job.launch, spelt))
    }

    fn defines_of(&self, file: FileId) -> Vec<String> {
        let folder = self.sources.path(file).parent();
        let here = self.build_defines.iter().filter(|(directory, _)| Some(directory.as_path()) == folder);
        let name = |define: &str| define.split('=').next().unwrap_or_default().to_owned();
        let built = here.flat_map(|(_, defines)| defines);
        let built = built.filter(|define| !self.defines.iter().any(|known| name(known) == name(define)));
        self.defines.iter().chain(built).cloned().collect()
    }

    fn include_dirs(&self, file: FileId) -> Vec<String> {
        let beside = self.sources.path(file).parent().map(|folder| folder.display().to_string());
        let beside = beside.filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned());
        std::iter::once(beside).chain(self.include_dirs.iter().cloned()).collect()
    }

    /// The slice of the project with one fix applied.
    fn fixed(
        &self,
        file: FileId,
        seen_from: Option<FileId>,
        kernel: &str,
        functors: &[Functor],
        proposal: &Proposal,
    ) -> Result<Fixed, String> {
        const MISFIT: &str = "the fix does not fit the file";
        let edits = |id: FileId| {
            let mut here: Vec<Edit> =
                proposal.edits.iter().filter(|edit| edit.span.file == id).cloned().collect();
            here.sort();
            here.dedup();
            here
        };
        let mut sources = Sources::default();
        for id in self.sources.ids() {
            let text = fix::apply(&self.sources.get(id).text, &edits(id)).ok_or(MISFIT)?;
            sources.add(SourceFile::new(self.sources.path(id), text));
        }
        let moved = functors.iter().map(|functor| {
            let (file, edits) = (functor.lambda.file, edits(functor.lambda.file));
            let to = |offset: u32| {
                let before: Vec<Edit> =
                    edits.iter().filter(|edit| edit.span.end <= offset).cloned().collect();
                let text = self.sources.get(file).text.get(..offset as usize)?;
                Some(fix::apply(text, &before)?.len())
            };
            let lambda = Span::new(file, to(functor.lambda.start)?, to(functor.lambda.end)?);
            Some(Functor { lambda, ..functor.clone() })
        });
        let functors: Vec<Functor> = moved.collect::<Option<_>>().ok_or(MISFIT)?;
        // nvcc reads other files from disk, where they are not fixed.
        let is_alone = proposal.edits.iter().all(|edit| edit.span.file == file);
        Ok(Fixed {
            title: proposal.title.clone(),
            rule: proposal.rule.clone(),
            ids: proposal.accesses.iter().map(|&index| index as u64).collect(),
            source: self.slicer.of(&sources).slice(file, seen_from, kernel, &functors)?,
            whole_file: (is_alone && functors.is_empty()).then(|| sources.get(file).text.clone()),
            count_requests: proposal.saves_requests,
        })
    }

    /// Types and macros of the project.
    pub fn types(&self) -> &Types<'a> {
        &self.types
    }
}

/// The fewest and the most that the profiler may say of a shared load, where that is not what the hardware takes: of the first
/// requests, which stand for all.
pub(super) fn profiled(access: &AccessFact) -> Option<[f64; 2]> {
    let request = access.request.as_ref()?;
    let op = access.shared_op?;
    let width = u32::try_from(access.width.0).ok()?;
    let (mut units, mut fewest, mut most) = (0, 0, 0);
    for lanes in &request.samples {
        let said = shared::profiled(lanes, width, op);
        units += shared::wavefronts(lanes, width, op).units;
        fewest += said.start();
        most += said.end();
    }
    let share = |of: u32| request.units * f64::from(of) / f64::from(units.max(1));
    (fewest != units || most != units).then(|| [share(fewest), share(most)])
}

/// The widest instruction.
const WIDEST: u64 = 16;

/// The element of an array of structs in global memory and its aligned piece in which an access to a field lies: one instruction
/// may move it.
fn piece(access: &AccessFact) -> Option<(u32, u64)> {
    let field = access.field.as_ref().filter(|_| access.space == MemorySpace::Global)?;
    let wide = u64::try_from(field.struct_align.0).ok()?.min(WIDEST);
    let (offset, _) = field.used.first()?;
    let offset = u64::try_from(offset.0).ok()?;
    let width = u64::try_from(access.width.0).ok()?;
    (wide > width).then(|| (field.element, offset / wide))
}

/// Each parameter with the number that the launch passes; of a pack, `args[0]` and so on.
fn parameters(kernel: &KernelFact) -> Vec<(String, Option<f64>)> {
    let of = |param: &ParamFact| match &param.packed {
        None => vec![(param.name.clone(), param.value)],
        Some(values) => {
            let named = |(at, value): (usize, &Option<f64>)| (format!("{}[{at}]", param.name), *value);
            values.iter().enumerate().map(named).collect()
        }
    };
    kernel.params.iter().flat_map(of).collect()
}

/// The instance with the classes of lambdas for the template parameters that are their types.
fn with_classes(kernel: &FunctionDef, instance: &str, closures: &[(String, Closure)]) -> String {
    let mut args = written(instance);
    for (param, closure) in closures {
        let param = kernel.params.iter().find(|known| known.name.as_str() == param);
        let Some(Type::Named(path)) = param.map(|param| &param.ty) else { continue };
        let place = kernel.template.iter().position(|known| Some(known.name) == path.as_simple());
        if let Some(arg) = place.and_then(|place| args.get_mut(place)) {
            arg.clone_from(&closure.name);
        }
    }
    match instance.split_once('<') {
        Some((plain, _)) if !closures.is_empty() => format!("{plain}<{}>", args.join(", ")),
        _ => instance.to_owned(),
    }
}

/// The instance with the template arguments before the first lambda's class: the others are deduced.
fn before_classes(instance: &str) -> String {
    let args = written(instance);
    match (instance.split_once('<'), args.iter().position(|arg| arg.starts_with(closure::PREFIX))) {
        (Some((plain, _)), Some(0)) => plain.to_owned(),
        (Some((plain, _)), Some(first)) => {
            format!("{plain}<{}>", args.get(..first).unwrap_or_default().join(", "))
        }
        _ => instance.to_owned(),
    }
}

/// A template parameter that was made up and whose values the kernel calls: no number stands in for those.
fn made_up_callable<'k>(kernel: &'k FunctionDef, made: &[String]) -> Option<&'k str> {
    let is_made = |ty: &Name| made.iter().any(|made| made.split(" = ").next() == Some(ty.as_str()));
    let of_type = |param: &'k VarDecl| match &param.ty {
        Type::Named(path) => path.as_simple().filter(is_made).map(|_| (param.name, path.name.as_str())),
        _ => None,
    };
    let params: Vec<(Name, &str)> = kernel.params.iter().filter_map(of_type).collect();
    let mut found = None;
    walk::expressions(kernel.body.as_deref().unwrap_or_default(), &mut |expr| {
        if let ExprKind::Call { callee, .. } = &expr.kind
            && let ExprKind::Name(path) = &callee.kind
        {
            let called = params.iter().find(|(name, _)| path.as_simple() == Some(*name));
            found = found.or(called.map(|(_, ty)| *ty));
        }
    });
    found
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
