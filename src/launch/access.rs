//! One access in one launch: what its requests cost, how sure that is, and on what it rests.

use super::kernel::Executed;
use super::sizes::{Sizes, Tried};
use super::strides::{lane_steps, needs_width, not_measured, struct_steps};
use crate::index::affine;
use crate::index::eval::Evaluator;
use crate::index::expr::{
    Arena, BID, DATA, DIM, Deps, ExprId, Loop, LoopId, Node, Op, Symbol, TID, UNKNOWN, loop_bit,
};
use crate::index::measure::{Measure, Plan, Tally, is_bounds_test};
use crate::ir::facts::{
    AccessFact, AccessPath, Bound, Bytes, Confidence, FlowFact, LaneWord, LaunchShape, MemorySpace,
    Operation, RequestFact, ShapeSource,
};
use crate::lower::exec::{AccessKind, RawAccess};
use crate::memory::{Cost, Lanes, SharedOp, constant, global, local, shared};

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
        natural: raw.merged.unwrap_or(raw.width).clamp(1, 16),
        cost: &cost,
    };
    let sets = if values_matter(arena, raw, kernel) { sizes.tried.len() } else { 1 };
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

/// Does it matter what values unknowns take? Not where they only say how far an array reaches, or how many blocks there are
/// that all find their part at the same place of a line.
fn values_matter(arena: &Arena, raw: &RawAccess, kernel: &Executed) -> bool {
    let open = UNKNOWN | DATA;
    let mut needed = arena.deps(raw.offset);
    for part in arena.conjuncts(raw.guard) {
        let deps = arena.deps(part);
        // A branch on data is taken whatever the data are.
        if deps & DATA == 0 && (raw.space != MemorySpace::Global || !is_bounds_test(arena, part)) {
            needed |= deps;
        }
    }
    needed |= kernel.block.iter().flatten().fold(0, |deps, &extent| deps | arena.deps(extent));
    let loops = raw.loops.iter().rev().chain(kernel.host_loops.iter().rev());
    for (id, of) in loops.filter_map(|id| Some((*id, arena.loops.get(id.0 as usize)?))) {
        if needed & loop_bit(id) != 0 {
            needed |= loop_deps(arena, of);
        }
    }
    let grid = kernel.grid.iter().flatten().fold(0, |deps, &extent| deps | arena.deps(extent));
    needed & open != 0 || (grid & open != 0 && needed & BID != 0 && !is_alike_in_blocks(arena, raw))
}

/// Does each block find its part at the same place of a line?
fn is_alike_in_blocks(arena: &Arena, raw: &RawAccess) -> bool {
    let by_block = |id: ExprId| arena.deps(id) & BID != 0;
    let in_guard =
        arena.conjuncts(raw.guard).into_iter().any(|part| by_block(part) && !is_bounds_test(arena, part));
    let (_, terms) = arena.terms(raw.offset);
    let aligned = terms.into_iter().all(|(coefficient, id)| {
        !by_block(id)
            || (coefficient % LINE == 0 && matches!(arena.node(id), Node::Symbol(Symbol::BlockIdx(_))))
    });
    let mut loops = raw.loops.iter().map(|id| arena.loops.get(id.0 as usize));
    let in_loop = loops.any(|of| of.is_none_or(|of| loop_deps(arena, of) & BID != 0));
    aligned && !in_guard && !in_loop
}

/// A line of memory, in bytes.
const LINE: i64 = 128;

/// What the condition and the variables of a loop depend on.
fn loop_deps(arena: &Arena, of: &Loop) -> Deps {
    of.vars.iter().fold(arena.deps(of.cond), |deps, var| deps | arena.deps(var.init) | arena.deps(var.next))
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

/// The part of a number by which others may differ from it and still be the same: what the last rounds of a loop come to.
const LIKE: f64 = 0.02;

/// The tally of one launch shape and one set of values for what is not known, both by number.
pub(super) struct Case {
    pub shape: usize,
    pub tried: usize,
    pub tally: Tally,
}

impl Case {
    pub fn units(&self) -> f64 {
        self.tally.units_per_request()
    }

    fn excess(&self) -> f64 {
        self.units() - self.tally.ideal_per_request()
    }

    /// Are the two one number, as exactly as numbers are compared with measurements?
    pub fn is_like(&self, other: &Case) -> bool {
        (self.units() - other.units()).abs() <= f64::max(0.005, LIKE * other.units())
    }
}

/// An access under every shape and every set of values.
pub(super) struct Measured<'m> {
    pub arena: &'m Arena,
    pub raw: &'m RawAccess,
    pub kernel: &'m Executed,
    pub sizes: &'m Sizes,
    pub shapes: &'m [LaunchShape],
    pub cases: &'m [Case],
    /// The most favourable to the code under analysis: it decides.
    pub best: &'m Case,
}

/// What the access costs in each of `shapes`, or why that is not known.
pub fn measure_access(
    eval: &mut Evaluator,
    raw: &RawAccess,
    kernel: &Executed,
    sizes: &Sizes,
    shapes: &[LaunchShape],
    fuel: &mut usize,
) -> AccessFact {
    let mut fact = blank(eval.arena, raw);
    if let Some(reason) = not_measured(eval.arena, raw, kernel) {
        fact.unknown = Some(reason);
        return fact;
    }
    let mut least = struct_steps(eval.arena, raw);
    least.extend(lane_steps(eval.arena, raw, kernel).into_iter().map(|index| (index, 1)));
    let with_steps = sizes.with_least(eval, &least);
    let sizes = with_steps.as_ref().unwrap_or(sizes);
    let (mut cases, mut irregular, mut undefined, mut requests) = (Vec::new(), 0, 0, 0);
    for (place, shape) in shapes.iter().enumerate() {
        if shape.source == ShapeSource::Hypothesis
            && needs_width(eval.arena, raw)
            && kernel.block.is_none_or(|block| eval.arena.as_const(block[0]).is_none())
        {
            fact.unknown = Some(
                "which lanes are neighbours depends on the width of the block, which is not seen".to_owned(),
            );
            return fact;
        }
        for (tried, tally) in tallies(eval, raw, kernel, sizes, shape, fuel).into_iter().enumerate() {
            irregular += tally.irregular;
            undefined += tally.undefined;
            requests += tally.requests;
            if tally.requests > 0 {
                cases.push(Case { shape: place, tried, tally });
            }
        }
        if eval.arena.deps(raw.offset) & (TID | BID) == 0 && place == 0 {
            break;
        }
    }
    let arena = eval.arena;
    // Values under which the hardware would refuse the access are not those of the program.
    if cases.iter().any(|case| case.tally.misaligned == 0) {
        cases.retain(|case| case.tally.misaligned == 0);
    }
    // Nor are those under which nothing gets there, where others do.
    if cases.iter().any(|case| !case.tally.is_forced) {
        cases.retain(|case| !case.tally.is_forced);
    }
    // A small size matters only where all lanes would cost more than they have to.
    let plain = |case: &Case| sizes.tried.get(case.tried).is_some_and(|tried| tried.guessed.is_empty());
    if cases.iter().any(|case| plain(case) && case.excess() < 0.005) {
        cases.retain(plain);
    }
    let best = cases.iter().min_by(|a, b| a.excess().total_cmp(&b.excess()).then(a.tried.cmp(&b.tried)));
    let Some(best) = best.filter(|_| irregular < requests.max(1)) else {
        fact.irregular = irregular > 0;
        fact.unknown = Some(reason(irregular, undefined));
        return fact;
    };
    let by_data = best.tally.lane_data_guard || best.tally.shared_data_guard;
    if by_data && raw.operation == Operation::Atomic && arena.deps(raw.offset) & TID == 0 {
        fact.unknown = Some("how many lanes reach this atomic depends on data".to_owned());
        return fact;
    }
    Measured { arena, raw, kernel, sizes, shapes, cases: &cases, best }.fill(&mut fact);
    fact
}

impl Measured<'_> {
    fn fill(&self, fact: &mut AccessFact) {
        let tally = &self.best.tally;
        let Some(worst_lanes) = tally.worst_lanes.clone() else { return };
        // Banks that depend on what has no name to print are no knowledge.
        if self.raw.space == MemorySpace::Shared && !self.values_agree() && self.open_sizes().is_empty() {
            fact.unknown = Some("the banks depend on values that are not known".to_owned());
            return;
        }
        fact.request = Some(RequestFact {
            units: tally.units_per_request(),
            ideal: tally.ideal_per_request(),
            active_lanes: tally.active as f64 / tally.requests as f64,
            requests: tally.requests,
            shape: self.best.shape,
            warps: tally.warps,
            off: tally.off,
            worst: tally.worst,
            worst_lanes,
            samples: tally.samples.clone(),
            rounds: tally.rounds,
            open: self.open(),
        });
        let one_stride = self.of_shape().all(|case| case.tally.lane_stride == tally.lane_stride);
        if !tally.stride_varies && one_stride {
            fact.lane_stride = tally.lane_stride.map(Bytes);
        }
        fact.assumptions = self.assumptions();
        fact.confidence = self.confidence(fact.assumptions.is_empty());
    }

    fn of_shape(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.shape == self.best.shape)
    }

    pub fn of_values(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| case.tried == self.best.tried)
    }

    /// Do all sets of values that were tried come to the same?
    pub fn values_agree(&self) -> bool {
        self.of_shape().all(|case| case.is_like(self.best))
    }

    /// Why the number is a bound only. Multiples of 32 for sizes are the one favourable case that is as good as known: it is
    /// what pitches and sizes are as a rule, and printed.
    fn open(&self) -> Option<Bound> {
        if self.best.tally.lane_data_decides {
            let units = self.best.units();
            return Some(Bound::AtMost(format!(
                "which lanes take a branch depends on the data of each: at most {units:.2} a request"
            )));
        }
        let rests_on_multiples =
            self.tried().is_some_and(Tried::is_favourable_multiple) && !self.open_sizes().is_empty();
        if !rests_on_multiples && !self.values_agree() {
            let (least, most) = range(self.of_shape());
            let of_data = self.open_sizes().is_empty() && self.arena.deps(self.raw.offset) & DATA != 0;
            let what = if of_data { "values in memory" } else { "sizes that are not known" };
            let reason = format!("it depends on {what}: {least:.2} to {most:.2} a request for those tried");
            return Some(Bound::Within { reason, least, most });
        }
        if !self.of_values().all(|case| case.is_like(self.best)) {
            let (least, most) = range(self.of_values());
            let reason = format!(
                "it depends on the block, which is not seen: {least:.2} to {most:.2} a request for those tried"
            );
            return Some(Bound::Within { reason, least, most });
        }
        None
    }

    pub fn tried(&self) -> Option<&Tried> {
        self.sizes.tried.get(self.best.tried)
    }

    /// The sizes in the address that nothing binds and that take a plausible value, by name.
    pub fn open_sizes(&self) -> Vec<String> {
        let guessed = |index: &u32| self.tried().is_some_and(|tried| tried.guessed.contains_key(index));
        affine::unknowns(self.arena, &[self.raw.offset])
            .into_iter()
            .filter(|index| !self.sizes.bound.contains_key(index) && !guessed(index))
            .filter_map(|index| self.arena.unknowns.get(index as usize))
            .filter(|unknown| unknown.preferred.is_none() && !unknown.is_bool)
            .map(|unknown| format!("`{}`", unknown.name))
            .collect()
    }

    fn confidence(&self, nothing_assumed: bool) -> Confidence {
        let everything = TID | BID | DIM | UNKNOWN | DATA;
        let (arena, raw) = (self.arena, self.raw);
        if !nothing_assumed {
            Confidence::Assumed
        } else if affine::own_deps(arena, raw.offset) & everything == 0
            && raw.loops.is_empty()
            && arena.as_const(raw.guard).is_some()
        {
            Confidence::Proven
        } else {
            Confidence::Shaped
        }
    }
}

/// The least and the most units per request.
fn range<'c>(cases: impl Iterator<Item = &'c Case>) -> (f64, f64) {
    cases
        .map(Case::units)
        .fold((f64::MAX, 0.0_f64), |(least, most), units| (least.min(units), most.max(units)))
}

fn blank(arena: &Arena, raw: &RawAccess) -> AccessFact {
    let terms = affine::lane_terms(arena, raw.offset);
    let walk = raw.loops.iter().rev().find_map(|&id| iteration_stride(arena, raw.offset, id));
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
        iteration_stride: walk.map(|(stride, _)| stride),
        iterations: walk.and_then(|(_, iterations)| iterations),
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
    let (constant, terms) = arena.terms(raw.offset);
    // Data read in a loop may differ from iteration to iteration.
    let stays = |id: &&LoopId| deps & (loop_bit(**id) | DATA) == 0;
    FlowFact {
        loops: raw.loops.iter().filter(|&&id| !runs_once_a_block(arena, id)).map(|id| id.0).collect(),
        invariant_in: raw.loops.iter().filter(stays).map(|id| id.0).collect(),
        address: raw.offset.0,
        constant,
        terms: terms.into_iter().map(|(coefficient, id)| (coefficient, id.0)).collect(),
        guard: raw.guard.0,
        guarded_by_data: arena.deps(raw.guard) & DATA != 0,
    }
}

/// The byte distance between iterations of a loop, where a counter with a constant step is a term of the address; and how
/// many there are, where its start and its end are constants.
fn iteration_stride(arena: &Arena, offset: ExprId, id: LoopId) -> Option<(Bytes, Option<i64>)> {
    let (_, terms) = arena.terms(offset);
    terms.into_iter().find_map(|(coefficient, factor)| {
        let Node::Symbol(Symbol::LoopVar(of, var)) = *arena.node(factor) else { return None };
        if of != id {
            return None;
        }
        let of = arena.loops.get(of.0 as usize)?;
        let var = of.vars.get(var as usize)?;
        let Node::Sum { constant: step, terms } = arena.node(var.next) else { return None };
        let [(1, only)] = terms[..] else { return None };
        if only != factor {
            return None;
        }
        let iterations = match (arena.node(of.cond), arena.as_const(var.init)) {
            (&Node::Binary { op: Op::Lt, a, b, .. }, Some(init)) if a == factor && *step > 0 => {
                arena.as_const(b).map(|end| ((end - init).max(0) + *step - 1) / *step)
            }
            _ => None,
        };
        Some((Bytes(coefficient.wrapping_mul(*step)), iterations))
    })
}

fn reason(irregular: u64, undefined: u64) -> String {
    if irregular > 0 {
        return "the index depends on data or on code that is not seen".to_owned();
    }
    if undefined > 0 {
        return "a value in the index has no meaning for the values tried".to_owned();
    }
    "no warp reaches it for the values tried".to_owned()
}
