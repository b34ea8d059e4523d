//! One kernel in one launch: parameters bound, body executed, accesses measured.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::shape::{Declared, annotation, completed, hypotheses};
use super::sizes::{Sizes, Tried};
use crate::index::affine;
use crate::index::eval::{Evaluator, VALUATIONS};
use crate::index::expr::{
    Arena, BID, DATA, DIM, Deps, ExprId, LoopId, Node, Op, Symbol, TID, UNKNOWN, loop_bit,
};
use crate::index::limits;
use crate::index::measure::{Measure, Plan, Tally};
use crate::ir::ast::{FunctionDef, Type, VarDecl};
use crate::ir::facts::{
    AccessFact, AccessPath, BaseFact, Bytes, Confidence, FieldFact, FlowFact, KernelFact, LaneWord,
    LaunchShape, MemorySpace, Operation, ParamFact, RequestFact, ShapeSource,
};
use crate::lower::builtin::PITCH;
use crate::lower::exec::{AccessKind, Dims, Exec, Launch, Mode, RawAccess};
use crate::lower::project::{Entry, Project};
use crate::lower::types::{TemplateEnv, TemplateValue, Ty};
use crate::lower::value::{Base, Pointer, Val};
use crate::memory::{Cost, Lanes, SharedOp, constant, global, local, shared};
use crate::source::Sources;

/// A kernel as executed, waiting to be measured.
struct Executed {
    name: String,
    kernel: Entry<Arc<FunctionDef>>,
    block: Option<[ExprId; 3]>,
    grid: Option<[ExprId; 3]>,
    host_loops: Vec<LoopId>,
    /// Shapes that are not expressions.
    fixed: Vec<LaunchShape>,
    launch_span: Option<crate::source::Span>,
    /// The buffer behind each pointer argument.
    buffers: Vec<Option<u32>>,
    /// The value of each scalar argument that is a constant.
    values: Vec<Option<f64>>,
    /// Bytes of dynamic shared memory.
    shared: Option<ExprId>,
    /// What the host tested before the launch.
    conditions: Vec<ExprId>,
    accesses: Vec<RawAccess>,
    gaps: Vec<String>,
}

fn buffer(arg: &Val) -> Option<u32> {
    match arg {
        Val::Ptr(pointer) => Some(pointer.base),
        _ => None,
    }
}

fn constant(arena: &Arena, arg: &Val) -> Option<f64> {
    match arg {
        Val::Int(value, _) => arena.as_const(*value).map(|value| value as f64),
        Val::Float(value, ..) => *value,
        _ => None,
    }
}

/// Executes kernels in the arena of the host code that launches them.
pub struct Runner<'p, 'd> {
    exec: Exec<'p>,
    declared: &'d Declared,
    executed: Vec<Executed>,
}

/// A kernel that nothing launches.
pub fn standalone(
    project: &Project,
    sources: &Sources,
    declared: &Declared,
    kernel: &Entry<Arc<FunctionDef>>,
) -> Vec<KernelFact> {
    let tu = project.unit_of(kernel.file, true);
    let mut runner = Runner::new(Exec::new(project, sources, tu, Mode::Device), declared);
    runner.alone(kernel);
    runner.finish()
}

impl<'p, 'd> Runner<'p, 'd> {
    pub fn new(exec: Exec<'p>, declared: &'d Declared) -> Self {
        Runner { exec, declared, executed: Vec::new() }
    }

    pub fn launch(&mut self, launch: &Launch) {
        let tu = if launch.tu.contains(launch.kernel.file) {
            launch.tu.clone()
        } else {
            self.exec.project.unit_of(launch.kernel.file, true)
        };
        self.exec.tu = tu;
        self.run(&launch.kernel, &launch.template, Some(launch));
    }

    fn alone(&mut self, kernel: &Entry<Arc<FunctionDef>>) {
        self.run(kernel, &[], None);
    }

    fn run(&mut self, kernel: &Entry<Arc<FunctionDef>>, template: &[TemplateValue], launch: Option<&Launch>) {
        let exec = &mut self.exec;
        exec.mode = Mode::Device;
        exec.alive = exec.arena.constant(1);
        exec.at_end = true;
        exec.loops.clear();
        exec.frames.clear();
        exec.accesses.clear();
        exec.probing = 0;
        exec.step_limit = exec.steps + limits::KERNEL_STEPS;
        let symbols = Dims::symbols(&mut exec.arena);
        let block = launch.and_then(|launch| launch.block).unwrap_or(symbols.block);
        exec.dims = Dims {
            // An extent that the launch leaves open is whatever block is tried.
            block: std::array::from_fn(|axis| {
                let is_known = exec.arena.deps(block[axis]) & (UNKNOWN | DATA) == 0;
                if is_known { block[axis] } else { symbols.block[axis] }
            }),
            grid: launch.and_then(|launch| launch.grid).unwrap_or(symbols.grid),
        };
        let def = kernel.item.clone();
        let args = launch.map(|launch| launch.args.clone()).unwrap_or_default();
        exec.push_frame(def.name, kernel.file, Rc::default(), None);
        let env = exec.bind_template_args(&def, template, &args);
        let name = instance_name(exec, &def, &env);
        if let Some(frame) = exec.frames.last_mut() {
            frame.env = env;
        }
        let buffers = args.iter().map(buffer).collect();
        let values = args.iter().map(|arg| constant(&exec.arena, arg)).collect();
        bind_parameters(exec, &def, args);
        let fixed = if launch.and_then(|launch| launch.block).is_none() {
            self.fixed_shapes(kernel)
        } else {
            Vec::new()
        };
        let exec = &mut self.exec;
        exec.statements(def.body.as_deref().unwrap_or(&[]));
        let mut gaps = Vec::new();
        if exec.out_of_budget() {
            gaps.push("the kernel is too long to analyse whole".to_owned());
        }
        exec.frames.clear();
        let accesses = std::mem::take(&mut exec.accesses);
        self.executed.push(Executed {
            name,
            kernel: kernel.clone(),
            block: launch.and_then(|launch| launch.block),
            grid: launch.and_then(|launch| launch.grid),
            host_loops: launch.map(|launch| launch.loops.clone()).unwrap_or_default(),
            fixed,
            launch_span: launch.map(|launch| launch.span),
            buffers,
            values,
            shared: launch.and_then(|launch| launch.shared),
            conditions: launch.map(|launch| launch.conditions.clone()).unwrap_or_default(),
            accesses,
            gaps,
        });
    }

    /// An annotation, the configuration, or launch bounds; empty: hypotheses.
    fn fixed_shapes(&mut self, kernel: &Entry<Arc<FunctionDef>>) -> Vec<LaunchShape> {
        let def = &kernel.item;
        if let Some(shape) = annotation(self.exec.sources, kernel.file, def) {
            return vec![shape];
        }
        if let Some(shape) = self.declared.find(def.name.as_str()) {
            return vec![shape];
        }
        let most = def.launch_bounds.first().and_then(|bound| {
            let value = self.exec.quietly(|exec| exec.value(bound));
            let atom = self.exec.atom(&value);
            self.exec.arena.as_const(atom)
        });
        let most = most.and_then(|most| u32::try_from(most).ok());
        let source = if most.is_some() { ShapeSource::LaunchBounds } else { ShapeSource::Hypothesis };
        let [uses_y, uses_z] = axes_used(self.exec.sources, def);
        hypotheses(uses_y, uses_z, most)
            .into_iter()
            .map(|block| LaunchShape { block, grid: None, source, span: None })
            .collect()
    }

    pub fn finish(self) -> Vec<KernelFact> {
        let Runner { exec, executed, .. } = self;
        let sources = exec.sources;
        let mut eval = Evaluator::new(&exec.arena);
        executed.iter().map(|kernel| measure_kernel(&mut eval, &exec.bases, sources, kernel)).collect()
    }
}

/// Do `threadIdx.y` and `.z` occur in the definition?
fn axes_used(sources: &Sources, def: &FunctionDef) -> [bool; 2] {
    let text = sources.text(def.span);
    let mentions = |axis: char| {
        text.match_indices("threadIdx").any(|(at, word)| {
            let rest = text[at + word.len()..].trim_start();
            rest.strip_prefix('.').is_some_and(|rest| rest.trim_start().starts_with(axis))
        })
    };
    [mentions('y'), mentions('z')]
}

fn instance_name(exec: &mut Exec, def: &FunctionDef, env: &TemplateEnv) -> String {
    if def.template.is_empty() {
        return def.name.to_string();
    }
    let args: Vec<String> = def
        .template
        .iter()
        .map(|param| match env.get(param.name) {
            Some(TemplateValue::Type(Ty::Unknown(_))) => param.name.to_string(),
            Some(TemplateValue::Type(ty)) => ty.name(),
            Some(TemplateValue::Value(Val::Function(names))) => {
                names.first().map(|function| function.name.to_string()).unwrap_or_default()
            }
            Some(TemplateValue::Value(value)) => {
                let atom = exec.atom(value);
                match (exec.arena.as_const(atom), value) {
                    (Some(known), Val::Int(_, Ty::Bool)) => (known != 0).to_string(),
                    _ => exec.arena.display(atom).to_string(),
                }
            }
            None => param.name.to_string(),
        })
        .collect();
    format!("{}<{}>", def.name, args.join(", "))
}

fn bind_parameters(exec: &mut Exec, def: &FunctionDef, args: Vec<Val>) {
    let mut args = args.into_iter();
    for (place, param) in def.params.iter().enumerate() {
        let ty = exec.ty(&param.ty);
        let ty = match ty {
            Ty::Array(of, _) => Ty::Ptr(of),
            Ty::Ref(to) => (*to).clone(),
            ty => ty,
        };
        let value = args.next().filter(|value| !matches!(value, Val::Void));
        let value = match (value, &ty) {
            (Some(Val::Ptr(pointer)), Ty::Ptr(to)) => {
                Val::Ptr(named_pointer(exec, pointer, to, param.name.as_str(), place))
            }
            // A null pointer in a launch says nothing about the kernel.
            (Some(Val::Opaque(..) | Val::Ref(_) | Val::Int(..)), Ty::Ptr(_)) | (None, _) => {
                parameter(exec, &ty, param.name.as_str(), place)
            }
            // What a function said that is not seen, or what the host's memory holds, is one number for all lanes: a size that
            // is not known.
            (Some(Val::Int(expr, _) | Val::Opaque(_, expr)), Ty::Int { .. } | Ty::Bool)
                if is_read(&exec.arena, expr) =>
            {
                exec.symbolic(&ty, param.name.as_str(), Some(place))
            }
            (Some(Val::Opaque(Ty::Unknown(_), _)), Ty::Struct(_)) => {
                exec.symbolic(&ty, param.name.as_str(), Some(place))
            }
            (Some(value), _) => exec.convert(value, &ty),
        };
        let value = match value {
            // Floats and unknowns of a launch keep what they depend on.
            Val::Void => exec.symbolic(&ty, param.name.as_str(), Some(place)),
            value => value,
        };
        exec.declare(param.name, ty, value, false);
    }
}

/// A value as it was read or returned, converted perhaps; what is computed from it keeps what it depends on.
fn is_read(arena: &Arena, id: ExprId) -> bool {
    match arena.node(id) {
        Node::Opaque { .. } | Node::Load { .. } => true,
        Node::Wrap { a, .. } => is_read(arena, *a),
        _ => false,
    }
}

fn parameter(exec: &mut Exec, ty: &Ty, name: &str, place: usize) -> Val {
    match ty {
        Ty::Ptr(to) => {
            let base = fresh_base(exec, name, to, place);
            let offset = exec.arena.constant(0);
            Val::Ptr(Pointer { base, offset, to: (**to).clone() })
        }
        _ => exec.symbolic(ty, name, Some(place)),
    }
}

/// The argument under the parameter's name, as the kernel's reader knows it.
fn named_pointer(exec: &mut Exec, pointer: Pointer, to: &Ty, name: &str, place: usize) -> Pointer {
    let base = fresh_base(exec, name, to, place);
    let keep = matches!(to, Ty::Void | Ty::Auto | Ty::Unknown(_));
    let to = if keep { pointer.to.clone() } else { to.clone() };
    Pointer { base, offset: pointer.offset, to }
}

fn fresh_base(exec: &mut Exec, name: &str, to: &Ty, place: usize) -> u32 {
    exec.bases.push(Base {
        name: name.to_owned(),
        space: MemorySpace::Global,
        span: None,
        param: Some(place),
        is_allocation: true,
        extents: Vec::new(),
        element: to.clone(),
    });
    exec.bases.len() as u32 - 1
}

// Measuring.

fn measure_kernel(eval: &mut Evaluator, bases: &[Base], sources: &Sources, kernel: &Executed) -> KernelFact {
    let def = &kernel.kernel.item;
    eval.set_bound(FxHashMap::default());
    let shapes = shapes_of(eval, sources, kernel);
    let mut sizes = Sizes::fitting(eval, &kernel.conditions);
    sizes.allow_few_lanes(eval, kernel.accesses.iter().map(|access| access.guard));
    let mut fuel = limits::EVALUATIONS_PER_KERNEL;
    let mut base_places: FxHashMap<u32, usize> = FxHashMap::default();
    let mut base_facts = Vec::new();
    let mut elements: FxHashMap<(u32, ExprId), u32> = FxHashMap::default();
    let mut accesses = Vec::new();
    let merged = super::merge::merged(eval.arena, bases, &kernel.accesses);
    for raw in &merged {
        let Some(base) = bases.get(raw.base as usize) else { continue };
        let place = *base_places.entry(raw.base).or_insert_with(|| {
            base_facts.push(base_fact(eval.arena, base));
            base_facts.len() - 1
        });
        let mut fact = measure_access(eval, raw, kernel, &sizes, &shapes, &mut fuel);
        fact.base = place;
        let unseen = bases.get(raw.base as usize).is_some_and(|base| base.element.name() == "?");
        if unseen && raw.element != "?" && fact.request.is_some() {
            fact.assumptions.push("an element whose type is not seen is 4 bytes wide".to_owned());
            fact.confidence = Confidence::Assumed;
        }
        if let Some(aggregate) = &raw.aggregate {
            let next = elements.len() as u32;
            let element = *elements.entry((raw.base, aggregate.element)).or_insert(next);
            fact.field = field_fact(raw, element);
        } else if let Some(used) = whole_struct(raw, bases) {
            let next = elements.len() as u32;
            let element = *elements.entry((raw.base, raw.offset)).or_insert(next);
            fact.field = Some(FieldFact { element, ..used });
        }
        accesses.push(fact);
    }
    for at in repeats(eval.arena, &merged) {
        if let Some(fact) = accesses.get_mut(at) {
            fact.is_repeated = true;
        }
    }
    let mut shapes = shapes.into_iter();
    let shape = shapes.next().unwrap_or(LaunchShape {
        block: [256, 1, 1],
        grid: None,
        source: ShapeSource::Hypothesis,
        span: None,
    });
    let shared_bytes = kernel
        .shared
        .and_then(|shared| eval.arena.as_const(shared))
        .and_then(|bytes| u32::try_from(bytes).ok());
    KernelFact {
        shared_bytes,
        name: kernel.name.clone(),
        name_span: def.name_span,
        span: def.span,
        shape,
        tried: shapes.collect(),
        bases: base_facts,
        accesses,
        params: params(kernel),
        gaps: kernel.gaps.clone(),
    }
}

/// Loads of what an earlier load got, with nothing stored to that memory space in between: the compiler loads once.
fn repeats(arena: &Arena, accesses: &[RawAccess]) -> Vec<usize> {
    let mut out = Vec::new();
    for (at, access) in accesses.iter().enumerate() {
        if access.operation != Operation::Load {
            continue;
        }
        let guard = arena.conjuncts(access.guard);
        let before = accesses.get(..at).unwrap_or(&[]).iter().rev();
        let repeated = before
            .take_while(|other| other.space != access.space || other.operation == Operation::Load)
            .take(64)
            .any(|other| {
                other.base == access.base
                    && other.offset == access.offset
                    && other.width == access.width
                    && other.space == access.space
                    && access.loops == other.loops
                    && arena.conjuncts(other.guard).iter().all(|part| guard.contains(part))
            });
        if repeated {
            out.push(at);
        }
    }
    out
}

fn params(kernel: &Executed) -> Vec<ParamFact> {
    let known = kernel.buffers.iter().copied().zip(kernel.values.iter().copied());
    let known = known.chain(std::iter::repeat((None, None)));
    let fact = |(param, (buffer, value)): (&VarDecl, (Option<u32>, Option<f64>))| {
        let (is_pointer, is_const, restrict) = match &param.ty {
            Type::Pointer { to, is_const, restrict } => (**to != Type::Void, *is_const, *restrict),
            _ => (false, false, false),
        };
        ParamFact {
            name: param.name.to_string(),
            name_span: param.name_span,
            span: param.span,
            is_pointer,
            is_const,
            is_restrict: restrict || param.storage.restrict,
            is_volatile: param.storage.is_volatile,
            value,
            buffer,
        }
    };
    kernel.kernel.item.params.iter().zip(known).map(fact).collect()
}

fn base_fact(arena: &Arena, base: &Base) -> BaseFact {
    let extents: Option<Vec<u64>> = base
        .extents
        .iter()
        .map(|&extent| arena.as_const(extent).and_then(|extent| u64::try_from(extent).ok()))
        .collect();
    BaseFact {
        name: base.name.clone(),
        space: base.space,
        declaration: base.span,
        param: base.param,
        extents: extents.unwrap_or_default(),
        element: base.element.name(),
        element_bytes: base.element.scalar_size().map(Bytes),
    }
}

/// The shapes to measure: the launch's own where it is one, else those declared or guessed.
fn shapes_of(eval: &mut Evaluator, sources: &Sources, kernel: &Executed) -> Vec<LaunchShape> {
    if let Some(shape) = launch_shape(eval, kernel) {
        return vec![shape];
    }
    if !kernel.fixed.is_empty() {
        return kernel.fixed.clone();
    }
    let [uses_y, uses_z] = axes_used(sources, &kernel.kernel.item);
    let blocks = match known_extents(eval, kernel) {
        [None, None, _] => hypotheses(uses_y, uses_z, None),
        known => completed(known),
    };
    blocks
        .into_iter()
        .map(|block| LaunchShape {
            block,
            grid: None,
            source: ShapeSource::Hypothesis,
            span: kernel.launch_span,
        })
        .collect()
}

/// The extents of the block that the launch site gives, where it leaves others open.
fn known_extents(eval: &mut Evaluator, kernel: &Executed) -> [Option<u32>; 3] {
    let Some(block) = kernel.block else { return [None; 3] };
    block.map(|extent| {
        let known = eval.arena.deps(extent) & (UNKNOWN | DATA) == 0;
        let value = known.then(|| eval.uniform(extent))?;
        u32::try_from(value).ok().filter(|value| (1..=1024).contains(value))
    })
}

/// The block at the launch site; `None` where it depends on something unknown.
fn launch_shape(eval: &mut Evaluator, kernel: &Executed) -> Option<LaunchShape> {
    let block = kernel.block?;
    eval.fuel = limits::EVALUATIONS_PER_ACCESS;
    eval.need(block);
    for &id in &kernel.host_loops {
        eval.start_loop(id);
    }
    let mut seen: Option<[i64; 3]> = None;
    for valuation in 0..VALUATIONS {
        eval.set_valuation(valuation);
        let mut extents = [1; 3];
        for (slot, &extent) in extents.iter_mut().zip(&block) {
            let value = eval.eval(extent);
            if value.undefined || value.data.is_some() {
                return None;
            }
            *slot = value.value[0];
        }
        if seen.is_some_and(|seen| seen != extents) {
            return None;
        }
        seen = Some(extents);
    }
    eval.set_valuation(0);
    let [x, y, z] = seen?;
    let threads = x.checked_mul(y)?.checked_mul(z)?;
    if !(1..=1024).contains(&threads) || x < 1 || y < 1 {
        return None;
    }
    let grid = kernel.grid.and_then(|grid| {
        let mut extents = [1u64; 3];
        for (slot, &extent) in extents.iter_mut().zip(&grid) {
            let value = eval.eval(extent);
            let known = eval.arena.deps(extent) & (UNKNOWN | DATA) == 0 && !value.undefined;
            *slot = u64::try_from(value.value[0]).ok().filter(|_| known)?;
        }
        Some(extents)
    });
    Some(LaunchShape {
        block: [x as u32, y as u32, z as u32],
        grid,
        source: ShapeSource::LaunchSite,
        span: kernel.launch_span,
    })
}

/// The access under one shape: the tally of each valuation.
fn tallies(
    eval: &mut Evaluator,
    raw: &RawAccess,
    kernel: &Executed,
    sizes: &Sizes,
    shape: &LaunchShape,
    fuel: &mut usize,
) -> Vec<Tally> {
    let arena = eval.arena;
    let cost = cost_of(raw);
    let from_launch = shape.source == ShapeSource::LaunchSite;
    let dims = kernel.block.filter(|_| from_launch);
    let plan = Plan {
        offset: raw.offset,
        guard: raw.guard,
        host_loops: &kernel.host_loops,
        loops: &raw.loops,
        block: dims.unwrap_or([raw.offset; 3]),
        grid: kernel.grid.filter(|_| grid_is_known(eval, kernel)),
        hypothesis: dims.is_none().then_some(shape.block),
        predicated: &raw.predicated,
        in_bounds: raw.space == MemorySpace::Global,
        align: raw.merged.unwrap_or(1),
        cost: &cost,
    };
    let deps = all_deps(arena, raw, kernel);
    let sets = if deps & (UNKNOWN | DATA) == 0 { 1 } else { sizes.tried.len() };
    let mut out = Vec::new();
    for tried in sizes.tried.iter().take(sets) {
        sizes.apply(eval, tried);
        let tally = Measure::run(eval, &plan, fuel);
        // A gather stays one whatever the unknowns are.
        let settled = out.is_empty() && tally.requests == 0 && tally.irregular > 0;
        out.push(tally);
        if settled {
            break;
        }
    }
    eval.set_valuation(0);
    out
}

fn grid_is_known(eval: &Evaluator, kernel: &Executed) -> bool {
    kernel.grid.is_some_and(|grid| grid.iter().all(|&extent| eval.arena.deps(extent) & DATA == 0))
}

/// Everything the access depends on, loops and launch included.
fn all_deps(arena: &Arena, raw: &RawAccess, kernel: &Executed) -> Deps {
    let mut deps = arena.deps(raw.offset) | arena.deps(raw.guard);
    for id in kernel.host_loops.iter().chain(&raw.loops) {
        if let Some(of) = arena.loops.get(id.0 as usize) {
            deps |= arena.deps(of.cond);
            deps |= of.vars.iter().fold(0, |deps, var| deps | arena.deps(var.init) | arena.deps(var.next));
        }
    }
    for extent in kernel.block.iter().chain(kernel.grid.iter()).flatten() {
        deps |= arena.deps(*extent);
    }
    deps
}

fn cost_of(raw: &RawAccess) -> impl Fn(&Lanes) -> Cost + use<> {
    let width = u32::try_from(raw.merged.unwrap_or(raw.width)).unwrap_or(16).max(1);
    let (space, operation, kind) = (raw.space, raw.operation, raw.kind);
    let reduced = kind == AccessKind::AtomicReduced;
    move |lanes: &Lanes| match space {
        _ if reduced => Cost { units: 1, ideal: 1 },
        MemorySpace::Global => global::sectors(lanes, width),
        MemorySpace::Shared => shared::wavefronts(lanes, width, shared_op(operation, kind)),
        MemorySpace::Constant => constant::words(lanes, width),
        MemorySpace::Local => local::sectors(lanes, width),
    }
}

fn shared_op(operation: Operation, kind: AccessKind) -> SharedOp {
    match (operation, kind) {
        (_, AccessKind::Matrix(count)) => SharedOp::Matrix(count),
        (Operation::Load, _) => SharedOp::Load,
        (Operation::Store, _) => SharedOp::Store,
        (Operation::Atomic, AccessKind::AtomicIncrement) => SharedOp::AtomicIncrement,
        (Operation::Atomic, AccessKind::AtomicCas) => SharedOp::AtomicCas,
        (Operation::Atomic, AccessKind::AtomicLoop) => SharedOp::AtomicLoop,
        (Operation::Atomic, _) => SharedOp::Atomic,
    }
}

fn measure_access(
    eval: &mut Evaluator,
    raw: &RawAccess,
    kernel: &Executed,
    sizes: &Sizes,
    shapes: &[LaunchShape],
    fuel: &mut usize,
) -> AccessFact {
    if let Some(reason) = not_measured(eval.arena, raw) {
        let mut fact = blank(eval.arena, raw);
        fact.unknown = Some(reason);
        return fact;
    }
    let mut all: Vec<(usize, Vec<Tally>)> = Vec::new();
    for (place, shape) in shapes.iter().enumerate() {
        if shape.source == ShapeSource::Hypothesis
            && needs_width(eval.arena, raw)
            && kernel.block.is_none_or(|block| eval.arena.as_const(block[0]).is_none())
        {
            let mut fact = blank(eval.arena, raw);
            fact.unknown = Some(
                "which lanes are neighbours depends on the width of the block, which is not seen".to_owned(),
            );
            return fact;
        }
        let tallies = tallies(eval, raw, kernel, sizes, shape, fuel);
        all.push((place, tallies));
        if eval.arena.deps(raw.offset) & (TID | BID) == 0 && place == 0 {
            break;
        }
    }
    let arena = eval.arena;
    let mut fact = blank(arena, raw);
    let flat: Vec<(usize, usize, &Tally)> = all
        .iter()
        .flat_map(|(shape, list)| list.iter().enumerate().map(move |(tried, tally)| (*shape, tried, tally)))
        .filter(|(.., tally)| tally.requests > 0)
        .collect();
    let whole = all.iter().flat_map(|(_, list)| list);
    let irregular: u64 = whole.clone().map(|tally| tally.irregular).sum();
    let requests: u64 = whole.clone().map(|tally| tally.requests).sum();
    if irregular >= requests.max(1) || flat.is_empty() {
        fact.irregular = irregular > 0;
        fact.unknown = Some(reason(irregular, whole.clone().map(|tally| tally.undefined).sum()));
        return fact;
    }
    // The most favourable to the code under analysis decides.
    let excess = |tally: &Tally| (tally.units as f64 - tally.ideal as f64) / tally.requests.max(1) as f64;
    let Some(&(shape, valuation, best)) =
        flat.iter().min_by(|a, b| excess(a.2).total_cmp(&excess(b.2)).then(a.1.cmp(&b.1)))
    else {
        return fact;
    };
    let same = |a: &Tally, b: &Tally| (a.units_per_request() - b.units_per_request()).abs() < 0.005;
    let agree_values = flat.iter().filter(|item| item.0 == shape).all(|item| same(item.2, best));
    let agree_shapes = flat.iter().filter(|item| item.1 == valuation).all(|item| same(item.2, best));
    let by_data = best.lane_data_guard || best.shared_data_guard;
    if by_data && raw.operation == Operation::Atomic && eval.arena.deps(raw.offset) & TID == 0 {
        fact.unknown = Some("how many lanes reach this atomic depends on data".to_owned());
        return fact;
    }
    let Some(worst_lanes) = best.worst_lanes.clone() else { return fact };
    fact.request = Some(RequestFact {
        units: best.units_per_request(),
        ideal: best.ideal_per_request(),
        active_lanes: best.active as f64 / best.requests as f64,
        requests: best.requests,
        off: best.off,
        worst: best.worst,
        worst_lanes,
        samples: best.samples.clone(),
        open: open_number(&flat, (shape, valuation), best, !open_sizes(arena, raw, sizes, valuation).is_empty()),
    });
    let one_stride =
        flat.iter().filter(|item| item.0 == shape).all(|item| item.2.lane_stride == best.lane_stride);
    if !best.stride_varies && one_stride {
        fact.lane_stride = best.lane_stride.map(Bytes);
    }
    let hypothetical = shapes.get(shape).is_some_and(|shape| shape.source == ShapeSource::Hypothesis);
    assume(arena, raw, kernel, sizes, best, valuation, agree_values, &mut fact);
    if hypothetical && arena.deps(raw.offset) & TID != 0 {
        let names: Vec<String> = shapes.iter().map(|shape| shape.to_string()).collect();
        let text = match (agree_shapes, names.as_slice()) {
            (_, [only]) => format!("a block of {only} threads"),
            (true, _) => format!("the same for blocks of {}", names.join(", ")),
            (false, _) => {
                let block = shapes.get(shape).map(LaunchShape::to_string).unwrap_or_default();
                format!("a block of {block} threads, the best of {}", names.join(", "))
            }
        };
        let why = match kernel.launch_span {
            Some(_) => "the launch leaves the block open",
            None => "no launch is seen",
        };
        fact.assumptions.push(format!("{why}: {text}"));
        fact.confidence = Confidence::Assumed;
    }
    fact
}

/// Why the number of the case that decides, `(shape, valuation)`, is a bound only. Multiples of 32 for sizes are the one
/// favourable case that is as good as known: it is what pitches and sizes are as a rule, and printed.
fn open_number(
    flat: &[(usize, usize, &Tally)],
    (shape, valuation): (usize, usize),
    best: &Tally,
    is_named: bool,
) -> Option<String> {
    if best.lane_data_decides {
        return Some(format!(
            "which lanes take a branch depends on the data of each: at most {:.1} a request",
            best.units_per_request()
        ));
    }
    let between = |what: &str, alike: &dyn Fn(&(usize, usize, &Tally)) -> bool| {
        let numbers = flat.iter().filter(|item| alike(item)).map(|item| item.2.units_per_request());
        let (low, high) = numbers.fold((f64::MAX, 0.0_f64), |(low, high), n| (low.min(n), high.max(n)));
        (high - low >= 0.005).then(|| format!("it depends on {what}: from {low:.1} to {high:.1} a request"))
    };
    let by_size = || between("sizes that are not known", &|item| item.0 == shape);
    let by_shape = || between("the block, which no launch gives", &|item| item.1 == valuation);
    (valuation != 0 || !is_named).then(by_size).flatten().or_else(by_shape)
}

/// Accesses that have no number whatever the lanes do.
fn not_measured(arena: &Arena, raw: &RawAccess) -> Option<String> {
    if raw.unsized_element {
        return Some("the type of the element is not seen".to_owned());
    }
    if raw.unseen_origin {
        return Some("where the pointer comes from is not seen".to_owned());
    }
    if let Some(name) = open_template_stride(arena, raw) {
        return Some(format!(
            "no instantiation gives the template argument `{name}`, the distance between lanes"
        ));
    }
    if has_data_stride(arena, raw) {
        return Some("the distance between lanes is a number of the host's that is not known".to_owned());
    }
    if is_open_layout(arena, raw, raw.offset) {
        return Some(
            "every dimension has a stride of its own that is not known: any could be the contiguous one"
                .to_owned(),
        );
    }
    if raw.kind == AccessKind::AtomicLoop && arena.deps(raw.offset) & TID == 0 {
        return Some(
            "a compare-and-swap loop of all lanes on one address: its requests depend on timing".to_owned(),
        );
    }
    None
}

/// The template argument, not given anywhere, that the distance between lanes is a multiple of.
fn open_template_stride(arena: &Arena, raw: &RawAccess) -> Option<String> {
    let (_, terms) = arena.terms(raw.offset);
    terms.into_iter().filter(|(_, id)| arena.deps(*id) & TID != 0).find_map(|(_, id)| {
        let Node::Product(factors) = arena.node(id) else { return None };
        factors.iter().find_map(|&factor| match arena.node(factor) {
            Node::Symbol(Symbol::Unknown(index)) => {
                let unknown = arena.unknowns.get(*index as usize).filter(|unknown| unknown.is_template)?;
                Some(unknown.name.clone())
            }
            _ => None,
        })
    })
}

/// Does the address follow `threadIdx.y` or `.z` and not `.x`? Then the width of the block says which lanes are neighbours.
fn needs_width(arena: &Arena, raw: &RawAccess) -> bool {
    let mut stack = vec![raw.offset];
    let (mut x, mut other) = (false, false);
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some(id) = stack.pop() {
        if arena.deps(id) & TID == 0 || !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Symbol(Symbol::ThreadIdx(axis)) if axis.index() == 0 => x = true,
            Node::Symbol(Symbol::ThreadIdx(_)) => other = true,
            // A counter or a value from behind a loop may hold any of them.
            Node::Symbol(_) | Node::Final { .. } => x = true,
            _ => stack.extend(arena.children(id)),
        }
    }
    other && !x
}

/// `x[i * (bytes / sizeof(T))]` with lanes along `i` and bytes that the host reads: the innermost stride of a tensor, which
/// is one element as a rule.
fn has_data_stride(arena: &Arena, raw: &RawAccess) -> bool {
    let Node::Sum { terms, .. } = arena.node(raw.offset) else { return false };
    terms.iter().any(|(_, id)| {
        let Node::Product(factors) = arena.node(*id) else { return false };
        let by_lane = |id: &ExprId| arena.deps(*id) & TID != 0;
        let per_element = |id: &ExprId| match arena.node(*id) {
            Node::Binary { op: Op::Div, a, b, .. } => is_read(arena, *a) && arena.as_const(*b).is_some(),
            _ => false,
        };
        factors.iter().any(by_lane) && factors.iter().any(per_element)
    })
}

/// `x[i * s0 + j * s1]` with strides from outside: whether lanes are neighbours is decided where the strides are made.
fn is_open_layout(arena: &Arena, raw: &RawAccess, offset: ExprId) -> bool {
    let terms = match arena.node(offset) {
        Node::Sum { terms, .. } => terms,
        // One side of a choice is enough.
        Node::Select { then, otherwise, .. } => {
            return is_open_layout(arena, raw, *then) || is_open_layout(arena, raw, *otherwise);
        }
        _ => return false,
    };
    let varies = |id: ExprId| arena.deps(id) & !(UNKNOWN | crate::index::expr::DIM) != 0;
    let open_stride = |id: ExprId| match arena.node(id) {
        Node::Product(factors) if factors.iter().any(|&factor| varies(factor)) => factors
            .iter()
            .copied()
            .find(|&factor| matches!(arena.node(factor), Node::Symbol(Symbol::Unknown(_)))),
        _ => None,
    };
    let mut open: Vec<ExprId> = Vec::new();
    for &(coefficient, id) in terms.iter().filter(|(_, id)| varies(*id)) {
        match open_stride(id) {
            Some(stride) if open.contains(&stride) => {}
            Some(stride) => open.push(stride),
            // A dimension that is contiguous, or lanes whose distance is known.
            None if coefficient.abs() == raw.width || arena.deps(id) & TID != 0 => return false,
            None => {}
        }
    }
    open.len() >= 2
}

fn blank(arena: &Arena, raw: &RawAccess) -> AccessFact {
    let terms = affine::lane_terms(arena, raw.offset);
    AccessFact {
        span: raw.span,
        calls: raw.calls.clone(),
        space: raw.space,
        operation: raw.operation,
        path: match raw.kind {
            AccessKind::Plain
            | AccessKind::AtomicCas
            | AccessKind::AtomicIncrement
            | AccessKind::AtomicReduced
            | AccessKind::AtomicLoop
            | AccessKind::AtomicOther => AccessPath::Plain,
            AccessKind::ReadOnly => AccessPath::ReadOnly,
            AccessKind::AsyncCopy => AccessPath::AsyncCopy,
            AccessKind::Matrix(count) => AccessPath::Matrix(count),
        },
        width: Bytes(raw.merged.unwrap_or(raw.width)),
        bytes: Bytes(raw.bytes),
        base: 0,
        index: arena.display(raw.offset).to_string(),
        is_affine: terms.is_some(),
        lane_terms: terms
            .unwrap_or_default()
            .into_iter()
            .map(|term| LaneWord {
                axis: term.axis.letter(),
                coefficient: term.coefficient.map(Bytes),
                text: term.text,
            })
            .collect(),
        lane_stride: None,
        iteration_stride: raw.loops.iter().rev().find_map(|&id| iteration_stride(arena, raw.offset, id)),
        request: None,
        unknown: None,
        irregular: false,
        is_width_seen: raw.element != "?",
        is_repeated: false,
        confidence: Confidence::Shaped,
        assumptions: Vec::new(),
        field: None,
        shared_op: (raw.space == MemorySpace::Shared).then(|| shared_op(raw.operation, raw.kind)),
        flow: flow(arena, raw),
    }
}

/// `for (row = blockIdx.x; row < rows; row += gridDim.x)`: launched with a block a row, as a rule, it has one iteration.
fn runs_once_a_block(arena: &Arena, id: LoopId) -> bool {
    let Some(of) = arena.loops.get(id.0 as usize) else { return false };
    of.vars.iter().any(|var| {
        let init = arena.deps(var.init);
        init & BID != 0 && init & TID == 0 && affine::own_deps(arena, var.next) & TID == 0
    })
}

fn flow(arena: &Arena, raw: &RawAccess) -> FlowFact {
    let deps = arena.deps(raw.offset);
    // Data read in a loop may differ from iteration to iteration.
    let stays = |id: &&LoopId| deps & (loop_bit(**id) | DATA) == 0;
    FlowFact {
        loops: raw.loops.iter().filter(|&&id| !runs_once_a_block(arena, id)).map(|id| id.0).collect(),
        invariant_in: raw.loops.iter().filter(stays).map(|id| id.0).collect(),
        address: raw.offset.0,
        guard: raw.guard.0,
        guarded_by_data: arena.deps(raw.guard) & DATA != 0,
    }
}

/// The byte distance between iterations of a loop, where a counter with a constant step is a term of the address.
fn iteration_stride(arena: &Arena, offset: ExprId, id: LoopId) -> Option<Bytes> {
    let (_, terms) = arena.terms(offset);
    terms.into_iter().find_map(|(coefficient, factor)| {
        let Node::Symbol(Symbol::LoopVar(of, var)) = *arena.node(factor) else { return None };
        if of != id {
            return None;
        }
        let next = arena.loops.get(of.0 as usize)?.vars.get(var as usize)?.next;
        let Node::Sum { constant, terms } = arena.node(next) else { return None };
        let [(1, only)] = terms[..] else { return None };
        (only == factor).then(|| Bytes(coefficient.wrapping_mul(*constant)))
    })
}

/// An assumption about more sizes than this and one names the first.
const NAMES_LISTED: usize = 4;

fn reason(irregular: u64, undefined: u64) -> String {
    if irregular > 0 {
        return "the index depends on data or on code that is not seen".to_owned();
    }
    if undefined > 0 {
        return "a value in the index has no meaning for the values tried".to_owned();
    }
    "no warp reaches it for the values tried".to_owned()
}

/// The sizes in the address that nothing binds and that take a plausible value, by name.
fn open_sizes(arena: &Arena, raw: &RawAccess, sizes: &Sizes, tried: usize) -> Vec<String> {
    let guessed = |index: &u32| sizes.tried.get(tried).is_some_and(|tried| tried.guessed.contains_key(index));
    affine::unknowns(arena, &[raw.offset])
        .into_iter()
        .filter(|index| !sizes.bound.contains_key(index) && !guessed(index))
        .filter_map(|index| arena.unknowns.get(index as usize))
        .filter(|unknown| unknown.preferred.is_none() && !unknown.is_bool)
        .map(|unknown| format!("`{}`", unknown.name))
        .collect()
}

/// Confidence and what it rests on.
#[allow(clippy::too_many_arguments)]
fn assume(
    arena: &Arena,
    raw: &RawAccess,
    kernel: &Executed,
    sizes: &Sizes,
    best: &Tally,
    tried: usize,
    agree: bool,
    fact: &mut AccessFact,
) {
    let mut roots = vec![raw.offset, raw.guard];
    for id in &raw.loops {
        if let Some(of) = arena.loops.get(id.0 as usize) {
            roots.push(of.cond);
            roots.extend(of.vars.iter().map(|var| var.init));
        }
    }
    let deps = affine::own_deps(arena, raw.offset);
    if raw.element == "?" {
        fact.assumptions.push("an element whose type is not seen is 4 bytes wide".to_owned());
    }
    if best.lane_data_decides {
        fact.assumptions.push("a branch on data is taken by all lanes".to_owned());
    }
    if best.shared_data_guard {
        fact.assumptions.push("tests against values in memory hold for all lanes".to_owned());
    }
    if best.assumed_guard {
        fact.assumptions.push("conditions on unknown sizes hold".to_owned());
    }
    if deps & DATA != 0 {
        fact.assumptions.push("values loaded once per warp are aligned to 32 elements".to_owned());
    }
    roots.extend(kernel.block.iter().chain(kernel.grid.iter()).flatten());
    let mut preferred = affine::unknowns(arena, &roots)
        .into_iter()
        .filter_map(|index| arena.unknowns.get(index as usize))
        .filter(|unknown| unknown.preferred.is_some())
        .peekable();
    if preferred.peek().is_some() {
        // The only values that are preferred are those of the command line and the pitch of an allocation.
        let text = if preferred.all(|unknown| unknown.name == PITCH) {
            "rows of a pitched allocation start at multiples of 512 bytes"
        } else {
            "the program runs without arguments"
        };
        fact.assumptions.push(text.to_owned());
    }
    let Some(Tried { valuation, guessed }) = sizes.tried.get(tried) else { return };
    for index in affine::unknowns(arena, &[raw.offset, raw.guard]) {
        if let (Some(value), Some(unknown)) = (guessed.get(&index), arena.unknowns.get(index as usize)) {
            fact.assumptions.push(format!("`{}` is {value}", unknown.name));
        }
    }
    if !affine::is_shaped(arena, raw.offset) || !agree {
        let names = open_sizes(arena, raw, sizes, tried);
        if !names.is_empty() {
            let list = match names.get(NAMES_LISTED..) {
                Some([_, _, ..]) => {
                    let listed = names.get(..NAMES_LISTED).unwrap_or_default().join(", ");
                    format!("{listed} and {} others", names.len() - NAMES_LISTED)
                }
                _ => names.join(", "),
            };
            let is = if names.len() == 1 { "is" } else { "are" };
            fact.assumptions.push(match (agree, *valuation) {
                (true, _) => format!("{list} {is} large"),
                (false, 0) => format!("{list} {is} a multiple of 32"),
                (false, 1) => format!("{list} {is} odd"),
                (false, _) => format!("{list} {is} a multiple of 8, not of 32"),
            });
        } else if !agree {
            fact.assumptions.push("sizes that are not known are favourable".to_owned());
        }
    }
    let everything = TID | BID | DIM | UNKNOWN | DATA;
    fact.confidence = if !fact.assumptions.is_empty() {
        Confidence::Assumed
    } else if deps & everything == 0 && raw.loops.is_empty() && arena.as_const(raw.guard).is_some() {
        Confidence::Proven
    } else {
        Confidence::Shaped
    };
}

/// Byte ranges sorted, overlaps joined.
fn joined(mut parts: Vec<(Bytes, Bytes)>) -> Vec<(Bytes, Bytes)> {
    parts.sort();
    let mut out: Vec<(Bytes, Bytes)> = Vec::new();
    for (start, size) in parts {
        match out.last_mut() {
            Some((before, length)) if start.0 <= before.0 + length.0 => {
                length.0 = length.0.max(start.0 + size.0 - before.0);
            }
            _ => out.push((start, size)),
        }
    }
    out
}

fn field_fact(raw: &RawAccess, element: u32) -> Option<FieldFact> {
    let aggregate = raw.aggregate.as_ref()?;
    let size = aggregate.ty.size?;
    let used = match aggregate.field {
        Some(offset) => match &raw.used {
            Some(parts) => parts.iter().map(|&(start, size)| (Bytes(offset + start), Bytes(size))).collect(),
            None => vec![(Bytes(offset), Bytes(raw.bytes))],
        },
        None => vec![(Bytes(0), Bytes(size))],
    };
    Some(FieldFact {
        struct_name: aggregate.ty.name.clone(),
        struct_bytes: Bytes(size),
        struct_align: Bytes(aggregate.ty.align),
        members: members(&aggregate.ty),
        used: joined(used),
        element,
        is_vector: aggregate.ty.is_vector,
    })
}

fn members(ty: &crate::lower::types::StructTy) -> Vec<(String, Bytes, Bytes)> {
    let sized = |field: &crate::lower::types::FieldTy| {
        let size = field.ty.scalar_size().unwrap_or(0);
        Some((field.name.to_string(), Bytes(field.offset?), Bytes(size)))
    };
    ty.fields.iter().filter_map(sized).collect()
}

/// A struct loaded or stored whole.
fn whole_struct(raw: &RawAccess, bases: &[Base]) -> Option<FieldFact> {
    let mut ty = &bases.get(raw.base as usize)?.element;
    while let Ty::Array(of, _) = ty {
        ty = of;
    }
    let Ty::Struct(of) = ty else { return None };
    if of.name != raw.element {
        return None;
    }
    let size = of.size?;
    let used = match &raw.used {
        Some(parts) if !parts.is_empty() => {
            parts.iter().map(|&(start, size)| (Bytes(start), Bytes(size))).collect()
        }
        _ => vec![(Bytes(0), Bytes(size))],
    };
    Some(FieldFact {
        struct_name: of.name.clone(),
        struct_bytes: Bytes(size),
        struct_align: Bytes(of.align),
        members: members(of),
        used: joined(used),
        element: 0,
        is_vector: of.is_vector,
    })
}
