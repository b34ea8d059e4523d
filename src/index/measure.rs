//! From an access to its requests: every warp of sample blocks, every iteration, each plausible valuation.
//!
//! A request is one execution of the access by one warp. [`Measure::run`] enumerates: the host loops around the launch,
//! sample blocks, warps, the device loops around the access; at each point it evaluates the guard and the address over the
//! lanes and asks the memory model. Loops that the address and the guard do not depend on run once.

use std::cell::OnceCell;

use super::affine::{self, gcd};
use super::eval::{Evaluator, WARP, threads};
use super::expr::{Arena, BID, DATA, Deps, ExprId, LOOPS, LoopId, Node, Op, Symbol, TID, UNKNOWN, loop_bit};
use super::limits;
use crate::memory::device::SECTOR_BYTES;
use crate::memory::{Cost, Lanes};

/// What one valuation of one access came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests with at least one active lane.
    pub requests: u64,
    /// Requests that a warp issues with all lanes switched off by a short branch.
    pub off: u64,
    /// Sums over requests.
    pub units: u64,
    pub ideal: u64,
    pub active: u64,
    /// The most expensive request.
    pub worst: Cost,
    pub worst_lanes: Option<Box<Lanes>>,
    /// The first requests, for layouts and unions.
    pub samples: Vec<Lanes>,
    /// How many of these are those of the first warp that makes any.
    pub rounds: usize,
    /// Requests whose lanes follow different data.
    pub irregular: u64,
    pub undefined: u64,
    /// The byte distance between neighbouring lanes, where it is one number.
    pub lane_stride: Option<i64>,
    pub stride_varies: bool,
    /// Lanes take a branch by their own data; it was taken by all of them.
    pub lane_data_guard: bool,
    /// The number depends on which lanes take that branch.
    pub lane_data_decides: bool,
    /// A test of lanes against data that they share was taken to hold for all of them.
    pub shared_data_guard: bool,
    /// Nothing was requested before conditions on unknowns were taken to hold.
    pub is_forced: bool,
    /// The first condition on an unknown that was taken to hold.
    pub assumed_guard: Option<ExprId>,
    pub block: [i64; 3],
    /// Requests at an address that is no multiple of their width: the hardware refuses these.
    pub misaligned: u64,
    /// The most warps of one block that make requests.
    pub warps: u32,
}

impl Tally {
    pub fn units_per_request(&self) -> f64 {
        self.units as f64 / self.requests.max(1) as f64
    }

    pub fn ideal_per_request(&self) -> f64 {
        self.ideal as f64 / self.requests.max(1) as f64
    }
}

/// One access in one launch.
pub struct Plan<'a> {
    pub offset: ExprId,
    pub guard: ExprId,
    /// Host loops around the launch, outermost first.
    pub host_loops: &'a [LoopId],
    /// Device loops around the access, outermost first.
    pub loops: &'a [LoopId],
    pub block: [ExprId; 3],
    pub grid: Option<[ExprId; 3]>,
    /// Replaces `block` where no launch is known.
    pub hypothesis: Option<[u32; 3]>,
    /// Conjuncts of the guard that switch lanes off but do not keep the warp away.
    pub predicated: &'a [ExprId],
    /// Tests against unknown sizes keep the access inside an array, and hold: those of global memory. Within a block they
    /// tell lanes apart.
    pub in_bounds: bool,
    /// Addresses are rounded down to a multiple of it: the access is a part of a wider one.
    pub align: i64,
    /// What an address has to be a multiple of.
    pub natural: i64,
    pub cost: &'a dyn Fn(&Lanes) -> Cost,
}

/// A grid that nobody gives.
const OPEN_GRID: [i64; 3] = [512, 64, 8];

/// Blocks of a plane that are all looked at where it matters which side of the diagonal they lie on.
const SMALL_PLANE: i64 = 64;

/// Requests of a warp in each of these.
const REQUESTS_IN_PLANE: usize = 2;

/// Requests kept of one access.
const SAMPLES: usize = 96;

/// A loop around the access. What requires a walk through expressions is found once, not at each iteration.
struct Around {
    id: LoopId,
    /// Those of its condition.
    conjuncts: Vec<ExprId>,
    is_remainder: OnceCell<bool>,
}

impl Around {
    fn new(arena: &Arena, id: LoopId) -> Around {
        let of = arena.loops.get(id.0 as usize);
        let conjuncts = of.map(|of| arena.conjuncts(of.cond)).unwrap_or_default();
        Around { id, conjuncts, is_remainder: OnceCell::new() }
    }
}

/// A part of the guard. What requires a walk through it is found once, not at each request.
struct Conjunct {
    id: ExprId,
    unknowns: OnceCell<Vec<u32>>,
    beside_data: OnceCell<Deps>,
}

impl Conjunct {
    fn new(id: ExprId) -> Conjunct {
        Conjunct { id, unknowns: OnceCell::new(), beside_data: OnceCell::new() }
    }

    fn unknowns(&self, arena: &Arena) -> &[u32] {
        self.unknowns.get_or_init(|| affine::unknowns(arena, &[self.id]))
    }

    fn deps_beside_data(&self, arena: &Arena) -> Deps {
        *self.beside_data.get_or_init(|| affine::deps_beside_data(arena, self.id))
    }

    /// Does the host's own test before the launch say what sizes the condition is about? Then what it cuts off is cut off.
    fn is_given(&self, eval: &Evaluator) -> bool {
        let sizes = self.unknowns(eval.arena);
        !sizes.is_empty() && sizes.iter().all(|index| eval.is_bound(*index))
    }

    fn asks_template(&self, arena: &Arena) -> bool {
        let is_template =
            |index: &u32| arena.unknowns.get(*index as usize).is_some_and(|unknown| unknown.is_template);
        self.unknowns(arena).iter().any(is_template)
    }
}

pub struct Measure<'e, 'a, 'p> {
    eval: &'e mut Evaluator<'a>,
    plan: &'p Plan<'p>,
    chain: Vec<Around>,
    needed: Deps,
    conjuncts: Vec<Conjunct>,
    left: usize,
    ignore_unknown_guards: bool,
    /// Open loops that lanes leave by their own data.
    parted: u32,
    pub tally: Tally,
}

impl<'e, 'a, 'p> Measure<'e, 'a, 'p> {
    /// The tally under the evaluator's current valuation. `kernel_fuel` is what the whole kernel may still compute.
    pub fn run(eval: &'e mut Evaluator<'a>, plan: &'p Plan<'p>, kernel_fuel: &mut usize) -> Tally {
        let conjuncts = eval.arena.conjuncts(plan.guard);
        let arena = eval.arena;
        let chain: Vec<Around> =
            plan.host_loops.iter().chain(plan.loops).map(|&id| Around::new(arena, id)).collect();
        let mut needed = conjuncts.iter().fold(arena.deps(plan.offset), |deps, &id| deps | arena.deps(id));
        for extent in plan.block.iter().chain(plan.grid.iter().flatten()) {
            needed |= arena.deps(*extent);
        }
        for Around { id, .. } in chain.iter().rev() {
            if needed & loop_bit(*id) != 0
                && let Some(of) = arena.loops.get(id.0 as usize)
            {
                needed |= arena.deps(of.cond);
                needed |=
                    of.vars.iter().fold(0, |deps, var| deps | arena.deps(var.init) | arena.deps(var.next));
            }
        }
        eval.need([plan.offset, plan.guard]);
        eval.need(plan.block.iter().chain(plan.grid.iter().flatten()).copied());
        eval.need(chain.iter().filter_map(|around| Some(arena.loops.get(around.id.0 as usize)?.cond)));
        eval.fuel = limits::EVALUATIONS_PER_ACCESS.min(*kernel_fuel / 4 + limits::EVALUATIONS_AT_LEAST);
        let granted = eval.fuel;
        let mut spent = 0;
        let mut measure = Measure {
            eval,
            plan,
            chain,
            needed,
            conjuncts: conjuncts.into_iter().map(Conjunct::new).collect(),
            left: limits::REQUESTS_PER_ACCESS,
            ignore_unknown_guards: false,
            parted: 0,
            tally: Tally::default(),
        };
        measure.nest(0, u32::MAX);
        let nothing = |tally: &Tally| tally.requests + tally.irregular + tally.undefined == 0;
        if nothing(&measure.tally) && measure.needed & (UNKNOWN | DATA) != 0 {
            measure.ignore_unknown_guards = true;
            measure.tally.is_forced = true;
            measure.left = limits::REQUESTS_PER_ACCESS;
            spent += granted - measure.eval.fuel;
            measure.eval.fuel = granted;
            measure.nest(0, u32::MAX);
        }
        spent += granted - measure.eval.fuel;
        *kernel_fuel = kernel_fuel.saturating_sub(spent);
        measure.tally
    }

    fn nest(&mut self, depth: usize, live: u32) {
        if depth == self.plan.host_loops.len() && depth == self.chain.len() {
            return self.blocks(depth);
        }
        if depth == self.plan.host_loops.len() {
            return self.blocks(depth);
        }
        self.iterate(depth, live);
    }

    /// The loops inside the kernel, then the request.
    fn device(&mut self, depth: usize, live: u32) {
        if depth == self.chain.len() { self.request(live) } else { self.iterate(depth, live) }
    }

    fn inner(&mut self, depth: usize, live: u32) {
        if depth <= self.plan.host_loops.len() { self.nest(depth, live) } else { self.device(depth, live) }
    }

    fn iterate(&mut self, depth: usize, mut live: u32) {
        let Some(id) = self.chain.get(depth).map(|around| around.id) else { return };
        let arena = self.eval.arena;
        let Some(of) = arena.loops.get(id.0 as usize) else { return };
        self.eval.start_loop(id);
        let relevant = self.needed & loop_bit(id) != 0;
        let deps = arena.deps(of.cond);
        let nesting = self.chain.len();
        let mut most = match nesting {
            1 => limits::LOOP_ITERATIONS * 2,
            2 => limits::LOOP_ITERATIONS,
            _ => limits::LOOP_ITERATIONS / 2,
        };
        if !relevant {
            most = 1;
        } else if deps & DATA != 0 {
            most = limits::DATA_ITERATIONS;
        }
        for iteration in 0..most {
            if self.left == 0 || self.eval.fuel == 0 {
                return;
            }
            if iteration > 0 || !of.test_last {
                let entered = self.condition(depth, iteration == 0, live);
                live &= entered;
            }
            if live == 0 {
                return;
            }
            let before = self.left;
            let parted = deps & DATA != 0 && self.parts_by_data(depth, live);
            self.parted += u32::from(parted);
            self.inner(depth + 1, live);
            self.parted -= u32::from(parted);
            // Iterations without a request still cost: a guard may never hold.
            if before == self.left {
                self.left = self.left.saturating_sub(1);
            }
            if iteration + 1 < most {
                self.eval.step_loop(id, live);
            }
        }
    }

    /// Do lanes go on with a loop for as long as their own data say?
    fn parts_by_data(&mut self, depth: usize, live: u32) -> bool {
        let Measure { chain, eval, .. } = self;
        let Some(around) = chain.get(depth) else { return false };
        around.conjuncts.iter().any(|&part| eval.eval(part).data_varies(live))
    }

    /// The lanes for which a loop goes on; conditions on data hold, and so does the first test of one on unknowns.
    fn condition(&mut self, depth: usize, first: bool, live: u32) -> u32 {
        let Measure { chain, eval, tally, .. } = self;
        let arena = eval.arena;
        let Some(around) = chain.get(depth) else { return live };
        let Some(of) = arena.loops.get(around.id.0 as usize) else { return live };
        let mut mask = u32::MAX;
        for &part in &around.conjuncts {
            let value = eval.eval(part);
            if value.undefined {
                continue;
            }
            mask &= if value.data.is_some() { !value.surely_off() } else { value.mask() };
        }
        let is_remainder = || *around.is_remainder.get_or_init(|| is_remainder(arena, of.cond));
        if first && mask & live == 0 && arena.deps(of.cond) & UNKNOWN != 0 && !is_remainder() {
            tally.assumed_guard.get_or_insert(of.cond);
            return live;
        }
        mask
    }

    /// Is the access switched off for all that this iteration of the host's loops launches?
    fn is_off_in_launch(&mut self, depth: usize) -> bool {
        let arena = self.eval.arena;
        let inner = self.chain.get(depth..).unwrap_or_default();
        let elsewhere =
            inner.iter().fold(TID | BID | DATA | UNKNOWN, |bits, around| bits | loop_bit(around.id));
        let Measure { conjuncts, eval, .. } = self;
        conjuncts.iter().filter(|part| arena.deps(part.id) & elsewhere == 0).any(|part| {
            let value = eval.eval(part.id);
            !value.undefined && value.mask() == 0
        })
    }

    fn blocks(&mut self, depth: usize) {
        if depth > 0 && self.is_off_in_launch(depth) {
            return;
        }
        let block = match self.plan.hypothesis {
            Some(block) => block.map(i64::from),
            None => self.plan.block.map(|extent| self.eval.uniform(extent).clamp(1, 1024)),
        };
        let grid = self
            .plan
            .grid
            .map(|grid| grid.map(|extent| self.eval.uniform(extent).clamp(1, i64::from(i32::MAX))));
        self.tally.block = block;
        self.eval.set_launch(block, grid.unwrap_or(OPEN_GRID));
        let count = |tally: &Tally| tally.requests + tally.irregular + tally.undefined;
        let before = count(&self.tally);
        let plane = grid.and_then(|grid| self.plane(grid));
        let warps = (block[0] * block[1] * block[2] / WARP as i64).max(1) as usize;
        let few = plane.as_ref().map(|_| REQUESTS_IN_PLANE * warps);
        let samples = plane.unwrap_or_else(|| self.sample_blocks(grid));
        let share = self.left / samples.len().max(1);
        for index in samples {
            self.one_block(depth, block, index, few.unwrap_or(share.max(64)));
        }
        if self.needed & BID == 0 {
            return;
        }
        let by_block = |part: &Conjunct| self.eval.arena.deps(part.id) & BID != 0;
        let tries = if self.conjuncts.iter().any(by_block) { usize::MAX } else { 1 };
        for index in border_blocks(grid).into_iter().take(tries) {
            if count(&self.tally) != before {
                return;
            }
            self.one_block(depth, block, index, share.max(64));
        }
    }

    /// All blocks of a small plane of a known grid, where a condition compares their places on two axes: those on the diagonal weigh in
    /// the fewer they are. Any first few of them are spread over the plane.
    fn plane(&self, [gx, gy, gz]: [i64; 3]) -> Option<Vec<[i64; 3]>> {
        let arena = self.eval.arena;
        let compares = |part: &Conjunct| {
            let is_one =
                matches!(arena.node(part.id), Node::Binary { op: Op::Lt | Op::Le | Op::Eq | Op::Ne, .. });
            is_one && affine::block_axes(arena, part.id)[..2] == [true, true]
        };
        let count = gx.saturating_mul(gy);
        if count > SMALL_PLANE || count * gz <= 4 || !self.conjuncts.iter().any(compares) {
            return None;
        }
        let step = (count * 5 / 8..).find(|step| gcd(*step, count) == 1)?;
        let place = |at: i64| at * step % count;
        Some((0..count).map(|at| [place(at) % gx, place(at) / gx, gz / 2]).collect())
    }

    /// All blocks of a tiny grid, else neighbours in the middle: two, or as many as start at different places of a sector.
    /// They lie beside the diagonal, on either side: kernels that skip a triangle of blocks treat the diagonal apart.
    fn sample_blocks(&self, grid: Option<[i64; 3]>) -> Vec<[i64; 3]> {
        if self.needed & BID == 0 {
            return vec![[0; 3]];
        }
        let grid = grid.unwrap_or(OPEN_GRID);
        let [gx, gy, gz] = grid;
        if gx.saturating_mul(gy).saturating_mul(gz) <= 4 {
            let all = (0..gz).flat_map(|z| (0..gy).flat_map(move |y| (0..gx).map(move |x| [x, y, z])));
            return all.collect();
        }
        let starts = self.starts_of_blocks();
        let [x, y, z] = grid.map(|extent| extent / 2);
        let within = |x: i64, y: i64, z: i64| [x.min(gx - 1), y.min(gy - 1), z.min(gz - 1)];
        let mut out = Vec::new();
        for step in 0..starts {
            let block = if step % 2 == 0 {
                within(x + step + 1, y, z + 1)
            } else {
                within(x + step - 1, y + step, z)
            };
            if !out.contains(&block) {
                out.push(block);
            }
        }
        out
    }

    /// How many neighbours along x have to be looked at to see every place of a sector that a block starts at, two at least.
    fn starts_of_blocks(&self) -> i64 {
        let arena = self.eval.arena;
        let (_, terms) = arena.terms(self.plan.offset);
        let step = terms.into_iter().find_map(|(coefficient, id)| match arena.node(id) {
            Node::Symbol(Symbol::BlockIdx(axis)) if axis.index() == 0 => Some(coefficient),
            _ => None,
        });
        let sector = i64::from(SECTOR_BYTES);
        let rest = step.map_or(0, |step| step.rem_euclid(sector));
        // The least multiple of the step that is one of a sector, too: a power of two, as a sector is.
        if rest == 0 { 2 } else { (sector >> rest.trailing_zeros()).clamp(2, 16) }
    }

    fn one_block(&mut self, depth: usize, block: [i64; 3], index: [i64; 3], share: usize) {
        self.eval.set_block_index(index);
        let warps = (block[0] * block[1] * block[2] + WARP as i64 - 1) / WARP as i64;
        let floor = self.left.saturating_sub(share);
        let one_is_all = self.needed & TID == 0 || self.warps_are_alike(block);
        let mut taking_part = 0;
        for warp in 0..warps {
            // Warps share the budget, so that the last ones get their turn.
            let share = (self.left.saturating_sub(floor)) / (warps - warp).max(1) as usize;
            let keep = self.left.saturating_sub(share.max(1));
            let (thread, mask) = threads(block, warp);
            self.eval.set_threads(thread);
            let rest = std::mem::replace(&mut self.left, share.max(1));
            let before = self.tally.requests;
            self.device(depth, mask);
            if self.tally.rounds == 0 {
                self.tally.rounds = self.tally.samples.len();
            }
            self.left = keep + self.left.min(rest);
            if self.tally.requests > before {
                taking_part += if one_is_all { warps as u32 } else { 1 };
            }
            if one_is_all {
                break;
            }
        }
        self.tally.warps = self.tally.warps.max(taking_part);
    }

    /// Does every warp see the addresses of the first, moved by a multiple of a sector? So it is in one row of full warps whose
    /// lanes are a constant number of bytes apart, if no condition looks at the thread. Banks turn alike, too.
    fn warps_are_alike(&self, block: [i64; 3]) -> bool {
        let arena = self.eval.arena;
        let [x, y, z] = block;
        let by_thread = |id: ExprId| arena.deps(id) & TID != 0;
        if y * z != 1 || x % WARP as i64 != 0 || self.conjuncts.iter().any(|part| by_thread(part.id)) {
            return false;
        }
        let in_loops = self.chain.iter().filter_map(|around| arena.loops.get(around.id.0 as usize));
        let mut parts = in_loops.flat_map(|of| {
            std::iter::once(of.cond).chain(of.vars.iter().flat_map(|var| [var.init, var.next]))
        });
        if parts.any(by_thread) {
            return false;
        }
        match arena.node(self.plan.offset) {
            Node::Sum { terms, .. } => terms.iter().all(|&(_, id)| {
                !by_thread(id) || matches!(arena.node(id), Node::Symbol(Symbol::ThreadIdx(_)))
            }),
            Node::Symbol(Symbol::ThreadIdx(_)) => true,
            _ => false,
        }
    }

    fn request(&mut self, live: u32) {
        self.left = self.left.saturating_sub(1);
        let mut active = live;
        let mut issued = live;
        let mut made_up = false;
        let mut by_data = self.parted > 0;
        let mut may_be_off = false;
        let Measure { eval, plan, conjuncts, tally, .. } = self;
        let arena = eval.arena;
        for part in conjuncts.iter() {
            let conjunct = part.id;
            let deps = arena.deps(conjunct);
            let value = eval.eval(conjunct);
            if value.data.is_some() && !value.undefined {
                active &= !value.surely_off();
                if !plan.predicated.contains(&conjunct) {
                    issued &= !value.surely_off();
                }
            }
            if value.data.is_some() {
                if value.data_varies(active) {
                    by_data = true;
                    may_be_off |= plan.predicated.contains(&conjunct);
                } else {
                    // The same data for all lanes parts them where it is compared with what they do not share.
                    tally.shared_data_guard |= part.deps_beside_data(arena) & (TID | LOOPS) != 0;
                }
                continue;
            }
            if value.undefined {
                continue;
            }
            let mask = value.mask();
            if deps & UNKNOWN != 0 && mask & active != active {
                // A condition on an unknown alone, the same for all lanes, does not shape the request.
                let uniform = mask == 0 || mask == u32::MAX;
                // Template arguments decide what code there is: a branch on one that is not seen has its own values.
                if part.asks_template(arena) {
                    active &= mask;
                    made_up = true;
                    continue;
                }
                if self.ignore_unknown_guards || (uniform && deps & TID == 0) {
                    tally.assumed_guard.get_or_insert(conjunct);
                    continue;
                }
            }
            // A bounds test against a size that is not known holds: what a made-up size cuts off says nothing.
            let cuts = mask & active != active && mask & active != 0;
            if cuts && plan.in_bounds && is_bounds_test(arena, conjunct) && !part.is_given(eval) {
                tally.assumed_guard.get_or_insert(conjunct);
                continue;
            }
            made_up |= deps & UNKNOWN != 0 && active & mask == 0;
            active &= mask;
            if !plan.predicated.contains(&conjunct) {
                issued &= mask;
            }
        }
        if active == 0 {
            // That no lane passes a test against a size that is not known says nothing about the program.
            self.tally.off += u64::from(issued != 0 && !made_up);
            return;
        }
        let address = self.eval.eval(self.plan.offset);
        if self.eval.fuel == 0 {
            return;
        }
        if address.undefined {
            self.tally.undefined += 1;
            return;
        }
        if active.count_ones() > 1 && address.data_varies(active) {
            self.tally.irregular += 1;
            return;
        }
        let align = self.plan.align.max(1);
        let address = address.value.map(|address| address.wrapping_sub(address.rem_euclid(align)));
        let lanes = Lanes { active, address };
        let natural = self.plan.natural;
        let is_off = |(_, address): (u32, i64)| address.rem_euclid(natural) != 0;
        self.tally.misaligned += u64::from(natural > 1 && lanes.iter().any(is_off));
        let cost = (self.plan.cost)(&lanes);
        // Whatever lanes take a branch, what costs one unit for all of them costs one for some of them.
        self.tally.lane_data_guard |= by_data;
        self.tally.lane_data_decides |= by_data && (may_be_off || cost.units > 1);
        self.count(&lanes, cost);
    }

    fn count(&mut self, lanes: &Lanes, cost: Cost) {
        let tally = &mut self.tally;
        tally.requests += 1;
        tally.units += u64::from(cost.units);
        tally.ideal += u64::from(cost.ideal);
        tally.active += u64::from(lanes.active.count_ones());
        let excess = |cost: Cost| cost.units.saturating_sub(cost.ideal);
        if tally.worst_lanes.is_none() || excess(cost) > excess(tally.worst) {
            tally.worst = cost;
            tally.worst_lanes = Some(Box::new(lanes.clone()));
        }
        if tally.samples.len() < SAMPLES {
            tally.samples.push(lanes.clone());
        }
        for lane in 1..WARP {
            let pair = 0b11 << (lane - 1);
            if lanes.active & pair == pair {
                let step = lanes.address[lane].wrapping_sub(lanes.address[lane - 1]);
                match tally.lane_stride {
                    None => tally.lane_stride = Some(step),
                    Some(before) if before != step => tally.stride_varies = true,
                    Some(_) => {}
                }
            }
        }
    }
}

/// Does a loop go on from where another one ended? Which lanes still have something to do follows from the sizes.
fn is_remainder(arena: &Arena, cond: ExprId) -> bool {
    let mut stack = vec![cond];
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Final { .. } => return true,
            Node::Symbol(Symbol::LoopVar(of, var)) => {
                let of = arena.loops.get(of.0 as usize);
                stack.extend(of.and_then(|of| of.vars.get(*var as usize)).map(|var| var.init));
            }
            _ => stack.extend(arena.children(id)),
        }
    }
    false
}

/// `i < n` with an unknown `n`, the same in each iteration. A test of the lane of the warp tells lanes apart.
pub fn is_bounds_test(arena: &Arena, conjunct: ExprId) -> bool {
    let deps = arena.deps(conjunct);
    let Node::Binary { op: Op::Lt | Op::Le, a, .. } = arena.node(conjunct) else { return false };
    let by_thread = deps & UNKNOWN != 0 && deps & (TID | BID) != 0 && deps & LOOPS == 0;
    by_thread && !affine::is_of_block(arena, *a)
}

/// The first block, and blocks in the middle of each face of the grid and in its corners: boundary conditions are theirs.
fn border_blocks(grid: Option<[i64; 3]>) -> Vec<[i64; 3]> {
    let mut out = vec![[0; 3]];
    let Some(grid) = grid else { return out };
    let last = grid.map(|extent| extent - 1);
    let middle = grid.map(|extent| extent / 2);
    for axis in 0..3 {
        for at in [0, last[axis]] {
            let mut face = middle;
            face[axis] = at;
            out.push(face);
        }
    }
    out.push(last);
    out.dedup();
    out
}
