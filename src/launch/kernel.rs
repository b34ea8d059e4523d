//! One kernel in one launch: parameters bound, body executed, accesses measured.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::access::measure_access;
use super::closure::closure_fact;
use super::fields::{field_fact, whole_struct};
use super::merge::{is_of_an_iteration, merged};
use super::shape::{Declared, annotation, completed, hypotheses};
use super::sizes::Sizes;
use crate::index::affine;
use crate::index::eval::{Evaluator, VALUATIONS};
use crate::index::expr::{Arena, DATA, ExprId, LoopId, Node, TID, UNKNOWN};
use crate::index::limits;
use crate::ir::ast::{FunctionDef, TemplateParam, Type, VarDecl};
use crate::ir::facts::{
    BaseFact, Bytes, ClosureFact, Confidence, FieldFact, KernelFact, LaunchShape, MemorySpace, Operation,
    ParamFact, ShapeSource,
};
use crate::lower::exec::{AccessKind, Dims, Exec, Launch, Mode, RawAccess};
use crate::lower::overload::is_pack;
use crate::lower::place::UNSEEN;
use crate::lower::project::{Entry, Project};
use crate::lower::types::{StructTy, TemplateEnv, TemplateValue, Ty};
use crate::lower::value::{Base, Pointer, Val};
use crate::source::{FileId, Sources, Span};

/// A kernel as executed, waiting to be measured.
pub(super) struct Executed {
    pub name: String,
    pub kernel: Entry<Arc<FunctionDef>>,
    /// See [`KernelFact::seen_from`].
    pub seen_from: Option<FileId>,
    pub block: Option<[ExprId; 3]>,
    pub grid: Option<[ExprId; 3]>,
    pub host_loops: Vec<LoopId>,
    /// Shapes that are not expressions.
    pub fixed: Vec<LaunchShape>,
    /// What the launch bounds allow.
    pub most_threads: Option<u32>,
    pub launch_span: Option<Span>,
    /// The buffer behind each pointer argument.
    pub buffers: Vec<Option<u32>>,
    /// The value of each scalar argument that is a constant.
    pub values: Vec<Option<f64>>,
    /// The numbers of structs that are passed.
    pub fields: Vec<Vec<Option<f64>>>,
    /// Each argument that is a lambda.
    pub closures: Vec<Option<ClosureFact>>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<ExprId>,
    /// What the host tested before the launch.
    pub conditions: Vec<ExprId>,
    pub accesses: Vec<RawAccess>,
    /// See [`KernelFact::has_unseen_shared`].
    pub has_unseen_shared: bool,
    pub gaps: Vec<String>,
}

fn buffer(arg: &Val) -> Option<u32> {
    match arg {
        Val::Ptr(pointer) => Some(pointer.base),
        _ => None,
    }
}

pub(super) fn constant(arena: &Arena, arg: &Val) -> Option<f64> {
    match arg {
        Val::Int(value, _) => arena.as_const(*value).map(|value| value as f64),
        Val::Float(value, ..) => *value,
        _ => None,
    }
}

/// The numbers of a struct, also of structs in it; `None` where it has anything else.
fn fields(arena: &Arena, arg: &Val) -> Option<Vec<Option<f64>>> {
    let Val::Obj(object) = arg else { return None };
    let mut out = Vec::new();
    for field in &object.fields {
        match field {
            Val::Int(..) | Val::Float(..) => out.push(constant(arena, field)),
            inner => out.extend(fields(arena, inner)?),
        }
    }
    Some(out)
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
        let instances = self.exec.project.instantiations(kernel);
        let is_alone = instances.is_empty();
        for instance in spread(instances, limits::LAUNCHES_PER_KERNEL) {
            self.exec.tu = self.exec.project.unit_of(instance.file, false);
            self.exec.push_frame(kernel.item.name, instance.file, Rc::default(), None);
            let template = self.exec.instantiated(&kernel.item, &instance.item);
            self.run(kernel, &template, None);
        }
        if is_alone {
            self.run(kernel, &[], None);
        }
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
        exec.types = 0;
        exec.has_unseen_shared = false;
        exec.fenced.clear();
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
        let env = exec.bind_template_args(&def.template, &def.params, template, &args);
        let name = instance_name(exec, &def, &env, template, launch.map(|_| args.as_slice()));
        if let Some(frame) = exec.frames.last_mut() {
            frame.env = env;
        }
        let buffers = args.iter().map(buffer).collect();
        let values = args.iter().map(|arg| constant(&exec.arena, arg)).collect();
        let fields = args.iter().map(|arg| fields(&exec.arena, arg).unwrap_or_default()).collect();
        let closures = args.iter().map(|arg| closure_fact(exec, arg)).collect();
        let renamed = bind_parameters(exec, &def, args);
        let conditions = launch.map(|launch| launch.conditions.as_slice()).unwrap_or_default();
        let conditions = conditions.iter().map(|&id| with_names(&mut exec.arena, id, &renamed)).collect();
        let fixed = if launch.and_then(|launch| launch.block).is_none() {
            self.fixed_shapes(kernel)
        } else {
            Vec::new()
        };
        let most_threads = self.most_threads(&def);
        let exec = &mut self.exec;
        exec.statements(def.body.as_deref().unwrap_or(&[]));
        let mut gaps = Vec::new();
        if exec.out_of_budget() {
            gaps.push("the kernel is too long to analyse whole".to_owned());
        }
        exec.frames.clear();
        let mut accesses = std::mem::take(&mut exec.accesses);
        for access in &mut accesses {
            access.fenced_loops =
                access.loops.iter().copied().filter(|of| exec.fenced.contains(of)).collect();
        }
        let differs = exec.project.is_seen_differently(kernel.file);
        let seen_from = differs.then(|| exec.project.file_of(exec.tu.root));
        self.executed.push(Executed {
            name,
            kernel: kernel.clone(),
            seen_from,
            block: launch.and_then(|launch| launch.block),
            grid: launch.and_then(|launch| launch.grid),
            host_loops: launch.map(|launch| launch.loops.clone()).unwrap_or_default(),
            fixed,
            most_threads,
            launch_span: launch.map(|launch| launch.span),
            buffers,
            values,
            fields,
            closures,
            shared: launch.and_then(|launch| launch.shared),
            conditions,
            has_unseen_shared: exec.has_unseen_shared,
            accesses,
            gaps,
        });
    }

    /// The threads of a block that `__launch_bounds__` allow.
    fn most_threads(&mut self, def: &FunctionDef) -> Option<u32> {
        let bound = def.launch_bounds.first()?;
        let value = self.exec.quietly(|exec| exec.value(bound));
        let atom = self.exec.atom(&value);
        u32::try_from(self.exec.arena.as_const(atom)?).ok()
    }

    /// An annotation, the configuration, or launch bounds; empty: hypotheses.
    fn fixed_shapes(&mut self, kernel: &Entry<Arc<FunctionDef>>) -> Vec<LaunchShape> {
        let def = &kernel.item;
        if let Some(shape) = annotation(self.exec.sources, def) {
            return vec![shape];
        }
        if let Some(shape) = self.declared.find(def.name.as_str()) {
            return vec![shape];
        }
        let most = self.most_threads(def);
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

/// The few launches or instances of a kernel's many that are analysed. They are spread evenly: a table of instances goes from
/// small to large.
pub fn spread<T>(all: Vec<T>, most: usize) -> impl Iterator<Item = T> {
    let count = all.len();
    // The places that `most` steps of the way from 0 to `count - 1` come to.
    let is_picked =
        move |place| count <= most || (0..most).any(|step| step * (count - 1) / (most - 1).max(1) == place);
    all.into_iter().enumerate().filter(move |(place, _)| is_picked(*place)).map(|(_, one)| one)
}

/// Launch bounds up to this tell the block; larger ones are what any block fits.
const USUAL_BLOCK: u32 = 256;

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

/// The kernel with its template arguments; `args` are those of its launch.
fn instance_name(
    exec: &mut Exec,
    def: &FunctionDef,
    env: &TemplateEnv,
    explicit: &[TemplateValue],
    args: Option<&[Val]>,
) -> String {
    if def.template.is_empty() {
        return def.name.to_string();
    }
    let mut names = Vec::new();
    for (place, param) in def.template.iter().enumerate() {
        let whole = || vec![param.name.to_string()];
        if param.is_pack {
            let held = packed(exec, def, param, explicit.get(place..).unwrap_or(&[]), args);
            let held = held.map(|held| held.iter().map(|one| argument_name(exec, Some(one))).collect());
            names.extend(held.and_then(|held: Vec<_>| held.into_iter().collect()).unwrap_or_else(whole));
        } else {
            names.push(argument_name(exec, env.get(param.name)).unwrap_or_else(|| param.name.to_string()));
        }
    }
    format!("{}<{}>", def.name, names.join(", "))
}

/// What a pack of the template stands for: what its parameters are passed, else what is written. `None` where that is not known.
fn packed(
    exec: &mut Exec,
    def: &FunctionDef,
    pack: &TemplateParam,
    written: &[TemplateValue],
    args: Option<&[Val]>,
) -> Option<Vec<TemplateValue>> {
    let pattern = def.params.iter().enumerate().find_map(|(at, param)| match &param.ty {
        Type::Pack(of) => Some((at, of)),
        _ => None,
    });
    let Some((first, of)) = pattern else {
        return (!written.is_empty()).then(|| written.to_vec());
    };
    let passed = args?.get(first..).unwrap_or(&[]);
    let deduced = passed.iter().map(|arg| {
        let mut one = TemplateEnv::default();
        let ty = exec.type_of(arg);
        exec.deduce(of, &ty, arg, std::slice::from_ref(pack), &mut one);
        one.get(pack.name).cloned()
    });
    deduced.collect()
}

/// What stands for the type of a lambda, which has no name.
pub const LAMBDA: &str = "lambda";

/// `None` where a template argument is not known.
fn argument_name(exec: &mut Exec, arg: Option<&TemplateValue>) -> Option<String> {
    Some(match arg? {
        TemplateValue::Type(Ty::Unknown(_)) => return None,
        TemplateValue::Type(ty) => ty.name(),
        TemplateValue::Value(Val::Function(names)) => {
            names.first().map(|function| function.name.to_string()).unwrap_or_default()
        }
        TemplateValue::Value(Val::Lambda(_)) => LAMBDA.to_owned(),
        TemplateValue::Value(value) => {
            let atom = exec.atom(value);
            match (exec.arena.as_const(atom), value) {
                (Some(known), Val::Int(_, Ty::Bool)) => (known != 0).to_string(),
                _ => exec.arena.display(atom).to_string(),
            }
        }
    })
}

/// A condition of the launch in terms of the kernel's parameters, where it compares what the launch passes.
fn with_names(arena: &mut Arena, condition: ExprId, renamed: &[(ExprId, ExprId)]) -> ExprId {
    let Node::Binary { op, unsigned, a, b } = *arena.node(condition) else { return condition };
    let name = |id: ExprId| {
        let read = unwrapped(arena, id);
        renamed.iter().find(|(passed, _)| *passed == read).map_or(id, |(_, name)| *name)
    };
    let (a, b) = (name(a), name(b));
    arena.binary(op, unsigned, a, b)
}

/// Without conversions.
fn unwrapped(arena: &Arena, id: ExprId) -> ExprId {
    match arena.node(id) {
        Node::Wrap { a, .. } => unwrapped(arena, *a),
        _ => id,
    }
}

/// Declares the parameters with what the launch passes; gives the names of what is a number that is not known.
fn bind_parameters(exec: &mut Exec, def: &FunctionDef, args: Vec<Val>) -> Vec<(ExprId, ExprId)> {
    let mut renamed = Vec::new();
    let mut args = args.into_iter();
    for (place, param) in def.params.iter().enumerate() {
        if is_pack(param) {
            // Each keeps what the launch passes, but that a pointer comes from somewhere.
            let rest = args.by_ref().enumerate();
            let rest = rest.map(|(at, value)| seen(exec, value, &format!("{}[{at}]", param.name))).collect();
            if let Some(frame) = exec.frames.last_mut() {
                frame.packs.insert(param.name, rest);
            }
            continue;
        }
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
                let named = exec.symbolic(&ty, param.name.as_str(), Some(place));
                let name = exec.atom(&named);
                renamed.push((unwrapped(&exec.arena, expr), name));
                named
            }
            (Some(Val::Opaque(Ty::Unknown(_), _)), Ty::Struct(_)) => {
                exec.symbolic(&ty, param.name.as_str(), Some(place))
            }
            // An object of another class that is converted on the way: a builder of the parameter's.
            (Some(value), Ty::Struct(of)) if is_of_another(exec, &value, of) => {
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
    renamed
}

fn is_of_another(exec: &mut Exec, value: &Val, of: &StructTy) -> bool {
    matches!(exec.type_of(value), Ty::Struct(other) if other.name != of.name)
}

/// A value as it was read or returned, converted perhaps; what is computed from it keeps what it depends on.
pub(super) fn is_read(arena: &Arena, id: ExprId) -> bool {
    match arena.node(id) {
        Node::Opaque { .. } | Node::Load { .. } => true,
        Node::Wrap { a, .. } => is_read(arena, *a),
        _ => false,
    }
}

/// An argument of a pack; a pointer from a source that is not seen is one of the kernel's own.
fn seen(exec: &mut Exec, value: Val, name: &str) -> Val {
    match value {
        Val::Ptr(pointer) if exec.bases.get(pointer.base as usize).is_none_or(|base| base.name == UNSEEN) => {
            let base = fresh_base(exec, name, &pointer.to, None);
            Val::Ptr(Pointer { base, ..pointer })
        }
        Val::Opaque(Ty::Ptr(to), _) => {
            let base = fresh_base(exec, name, &to, None);
            Val::Ptr(Pointer { base, offset: exec.arena.constant(0), to: (*to).clone() })
        }
        value => value,
    }
}

fn parameter(exec: &mut Exec, ty: &Ty, name: &str, place: usize) -> Val {
    match ty {
        Ty::Ptr(to) => {
            let base = fresh_base(exec, name, to, Some(place));
            let offset = exec.arena.constant(0);
            Val::Ptr(Pointer { base, offset, to: (**to).clone() })
        }
        _ => exec.symbolic(ty, name, Some(place)),
    }
}

/// The argument under the parameter's name, as the kernel's reader knows it.
fn named_pointer(exec: &mut Exec, pointer: Pointer, to: &Ty, name: &str, place: usize) -> Pointer {
    let base = fresh_base(exec, name, to, Some(place));
    let keep = matches!(to, Ty::Void | Ty::Auto | Ty::Unknown(_));
    let to = if keep { pointer.to.clone() } else { to.clone() };
    Pointer { base, offset: pointer.offset, to }
}

fn fresh_base(exec: &mut Exec, name: &str, to: &Ty, param: Option<usize>) -> u32 {
    exec.bases.push(Base {
        name: name.to_owned(),
        space: MemorySpace::Global,
        span: None,
        param,
        is_allocation: true,
        is_contiguous_tensor: false,
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
    let merged = merged(eval.arena, bases, &kernel.accesses);
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
        if base.is_contiguous_tensor && fact.request.is_some() && eval.arena.deps(raw.offset) & TID != 0 {
            fact.assumptions.push("the last dimension of a tensor is contiguous".to_owned());
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
        seen_from: kernel.seen_from,
        shape,
        tried: shapes.collect(),
        bases: base_facts,
        accesses,
        params: params(kernel),
        has_unseen_shared: kernel.has_unseen_shared,
        gaps: kernel.gaps.clone(),
    }
}

/// Loads of what an earlier load got, with nothing stored to that memory space in between: the compiler loads once. So it
/// does not load what the access before it stored in global memory.
fn repeats(arena: &Arena, accesses: &[RawAccess]) -> Vec<usize> {
    let mut out = Vec::new();
    for (at, access) in accesses.iter().enumerate() {
        if access.operation != Operation::Load {
            continue;
        }
        let guard = arena.conjuncts(access.guard);
        let is_same = |other: &RawAccess| {
            other.base == access.base
                && other.width == access.width
                && other.space == access.space
                && other.fence == access.fence
                && ((other.offset == access.offset && access.loops == other.loops)
                    || is_of_an_iteration(arena, other, access))
                && arena.conjuncts(other.guard).iter().all(|part| guard.contains(part))
        };
        let before = || accesses.get(..at).unwrap_or(&[]).iter().rev();
        let stored = access.space == MemorySpace::Global
            && before().find(|other| other.space == access.space).is_some_and(|last| {
                last.operation == Operation::Store && last.kind == AccessKind::Plain && is_same(last)
            });
        let repeated = before()
            .take_while(|other| other.space != access.space || other.operation == Operation::Load)
            .take(256)
            .any(is_same);
        if repeated || stored {
            out.push(at);
        }
    }
    out
}

fn params(kernel: &Executed) -> Vec<ParamFact> {
    let known = kernel.buffers.iter().copied().zip(kernel.values.iter().copied());
    let known = known.chain(std::iter::repeat((None, None)));
    let fact = |place: usize, param: &VarDecl, (buffer, value): (Option<u32>, Option<f64>)| {
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
            fields: kernel.fields.get(place).cloned().unwrap_or_default(),
            buffer,
            closure: kernel.closures.get(place).cloned().flatten(),
            packed: is_pack(param).then(|| kernel.values.get(place..).unwrap_or(&[]).to_vec()),
        }
    };
    let params = kernel.kernel.item.params.iter().zip(known).enumerate();
    params.map(|(place, (param, known))| fact(place, param, known)).collect()
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
        [None, None, _] => {
            hypotheses(uses_y, uses_z, kernel.most_threads.filter(|most| *most <= USUAL_BLOCK))
        }
        known => completed(known, kernel.most_threads),
    };
    // What the launch rounds an extent to: `dim3(ceil_div(n, 32) * 32, …)`.
    let steps = kernel.block.map(|block| block.map(|extent| affine::multiple_of(eval.arena, extent, 8)));
    let is_rounded = |block: &&[u32; 3]| {
        block
            .iter()
            .zip(steps.into_iter().flatten())
            .all(|(extent, step)| i64::from(*extent) % step.max(1) == 0)
    };
    let rounded: Vec<[u32; 3]> = blocks.iter().filter(is_rounded).copied().collect();
    let blocks = if rounded.is_empty() { blocks } else { rounded };
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
