//! Evaluation over the lanes of one warp: an expression becomes 32 integers.
//!
//! It is exact for `% / & | ^ << >>`, ternaries and swizzles, where stride lattices fail. Three things make a value
//! less than known, and each is tracked: it may depend on an unknown that a *valuation* assigns (static: the
//! [`UNKNOWN`] bit of its dependencies), on data in memory (a hash per lane of the data it saw: equal hashes mean equal
//! data, so a row number loaded once per warp is uniform though nobody knows it), or be undefined ([`Lanes32::undefined`]).

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{
    Arena, BID, DATA, DIM, Deps, ExprId, LoopId, Node, Op, Symbol, TID, UNKNOWN, apply, loop_bit, wrap,
};
use super::limits;

/// Lanes of a warp.
pub const WARP: usize = 32;

/// One value per lane.
#[derive(Clone, Debug)]
pub struct Lanes32 {
    pub value: [i64; WARP],
    /// A hash of the data in memory that the lane's value depends on; [`NO_DATA`] where it depends on none.
    pub data: Option<Box<[u32; WARP]>>,
    /// Some lane's value has no meaning: division by zero, a loop variable outside its loop.
    pub undefined: bool,
}

impl Lanes32 {
    pub fn splat(value: i64) -> Self {
        Lanes32 { value: [value; WARP], data: None, undefined: false }
    }

    /// Do lanes of `mask` that are active see different data?
    pub fn data_varies(&self, mask: u32) -> bool {
        let Some(data) = &self.data else { return false };
        let mut seen = None;
        (0..WARP)
            .filter(|lane| mask >> lane & 1 == 1)
            .any(|lane| *seen.get_or_insert(data[lane]) != data[lane])
    }

    /// The lanes where the value is 0 whatever the data are.
    pub fn surely_off(&self) -> u32 {
        let off = |lane: usize| {
            self.value[lane] == 0 && self.data.as_ref().is_none_or(|data| data[lane] == NO_DATA)
        };
        (0..WARP).fold(0, |mask, lane| mask | u32::from(off(lane)) << lane)
    }

    /// The lanes where the value is not 0.
    pub fn mask(&self) -> u32 {
        (0..WARP).fold(0, |mask, lane| mask | u32::from(self.value[lane] != 0) << lane)
    }
}

/// The hash of no data.
pub const NO_DATA: u32 = 0;

/// How many different sets of plausible values unknowns are given.
pub const VALUATIONS: usize = 3;

/// The plausible value of the `index`th unknown. Valuation 0 has multiples of 32 (the favourable case for pitches and
/// offsets), 1 odd values, 2 multiples of 8 that are not multiples of 32. All are large and distinct, so that a
/// comparison with a size holds and two sizes never cancel.
pub fn plausible(valuation: usize, index: u32) -> i64 {
    let k = i64::from(index);
    match valuation {
        0 => 4096 + 1024 * (k % 64) + 65536 * (k / 64),
        1 => 3001 + 74 * k,
        _ => 8 * (301 + 2 * k),
    }
}

fn mix(a: u32, b: u32) -> u32 {
    let mut h = a.wrapping_mul(0x9E37_79B1) ^ b.rotate_left(15).wrapping_mul(0x85EB_CA77);
    h ^= h >> 15;
    h = h.wrapping_mul(0x2C1B_3C6D);
    h ^ h >> 13
}

fn mix64(a: u32, b: i64) -> u32 {
    mix(mix(a, b as u32), (b >> 32) as u32)
}

/// What stands for data nobody knows: like [`plausible`], aligned in valuation 0.
fn plausible_data(valuation: usize, hash: u32) -> i64 {
    let h = i64::from(hash % 8192);
    match valuation {
        0 => 32 * h,
        1 => 32 * h + 1 + 2 * i64::from(hash >> 28),
        _ => 8 * (2 * h + 1),
    }
}

pub struct Evaluator<'a> {
    pub arena: &'a Arena,
    valuation: usize,
    bound: FxHashMap<u32, i64>,
    clock: u64,
    changed: [u64; 64],
    memo: Vec<Option<(u64, Rc<Lanes32>)>>,
    scalars: Vec<Option<(u64, Option<i64>)>>,
    thread: [[i64; WARP]; 3],
    block_index: [i64; 3],
    block: [i64; 3],
    grid: [i64; 3],
    loops: FxHashMap<LoopId, Vec<Rc<Lanes32>>>,
    /// Nodes that may still be computed before values count as undefined.
    pub fuel: usize,
    /// Loop variables that some address, guard or condition needs; the others are not followed.
    needed: FxHashSet<(LoopId, u32)>,
    walked: FxHashSet<ExprId>,
    /// The value of those others.
    nothing: Rc<Lanes32>,
}

impl<'a> Evaluator<'a> {
    pub fn new(arena: &'a Arena) -> Self {
        Evaluator {
            arena,
            valuation: 0,
            bound: FxHashMap::default(),
            clock: 1,
            changed: [1; 64],
            memo: vec![None; arena.len()],
            scalars: vec![None; arena.len()],
            thread: [[0; WARP]; 3],
            block_index: [0; 3],
            block: [1; 3],
            grid: [1; 3],
            loops: FxHashMap::default(),
            fuel: limits::EVALUATIONS_PER_ACCESS,
            needed: FxHashSet::default(),
            walked: FxHashSet::default(),
            nothing: Rc::new(Lanes32 { undefined: true, ..Lanes32::splat(0) }),
        }
    }

    fn touch(&mut self, mut deps: Deps) {
        self.clock += 1;
        while deps != 0 {
            self.changed[deps.trailing_zeros() as usize] = self.clock;
            deps &= deps - 1;
        }
    }

    pub fn set_valuation(&mut self, valuation: usize) {
        if valuation != self.valuation {
            self.valuation = valuation;
            self.touch(UNKNOWN | DATA);
        }
    }

    /// Gives unknowns, by index, values that go before the plausible ones.
    pub fn set_bound(&mut self, bound: FxHashMap<u32, i64>) {
        if bound != self.bound {
            self.bound = bound;
            self.touch(UNKNOWN);
        }
    }

    pub fn set_launch(&mut self, block: [i64; 3], grid: [i64; 3]) {
        if (block, grid) != (self.block, self.grid) {
            (self.block, self.grid) = (block, grid);
            self.touch(DIM);
        }
    }

    pub fn set_block_index(&mut self, index: [i64; 3]) {
        if index != self.block_index {
            self.block_index = index;
            self.touch(BID);
        }
    }

    pub fn set_threads(&mut self, thread: [[i64; WARP]; 3]) {
        if thread != self.thread {
            self.thread = thread;
            self.touch(TID);
        }
    }

    /// Marks the loop variables that these expressions need, directly or through other variables.
    pub fn need(&mut self, roots: impl IntoIterator<Item = ExprId>) {
        let arena = self.arena;
        let mut stack: Vec<ExprId> = roots.into_iter().collect();
        while let Some(id) = stack.pop() {
            if !self.walked.insert(id) {
                continue;
            }
            match *arena.node(id) {
                Node::Symbol(Symbol::LoopVar(of, var)) | Node::Final { of, var } => {
                    let Some(found) = arena.loops.get(of.0 as usize) else { continue };
                    stack.push(found.cond);
                    if self.needed.insert((of, var))
                        && let Some(var) = found.vars.get(var as usize)
                    {
                        stack.extend([var.init, var.next]);
                    }
                }
                _ => stack.extend(arena.children(id)),
            }
        }
    }

    /// Enters a loop: its variables take their start values.
    pub fn start_loop(&mut self, id: LoopId) {
        let arena = self.arena;
        let Some(of) = arena.loops.get(id.0 as usize) else { return };
        let mut values = Vec::with_capacity(of.vars.len());
        for (place, var) in of.vars.iter().enumerate() {
            let needed = self.needed.contains(&(id, place as u32));
            values.push(if needed { self.eval(var.init) } else { self.nothing.clone() });
        }
        self.loops.insert(id, values);
        self.touch(loop_bit(id));
    }

    /// Goes to the next iteration; lanes outside `live` keep their values.
    pub fn step_loop(&mut self, id: LoopId, live: u32) {
        let arena = self.arena;
        let Some(of) = arena.loops.get(id.0 as usize) else { return };
        let mut next = Vec::with_capacity(of.vars.len());
        for (place, var) in of.vars.iter().enumerate() {
            if !self.needed.contains(&(id, place as u32)) {
                next.push(self.nothing.clone());
                continue;
            }
            let mut value = self.eval(var.next);
            if live != u32::MAX
                && let Some(old) = self.loops.get(&id).and_then(|vars| vars.get(place))
            {
                let merged = Rc::make_mut(&mut value);
                for lane in (0..WARP).filter(|lane| live >> lane & 1 == 0) {
                    merged.value[lane] = old.value[lane];
                }
            }
            next.push(value);
        }
        self.loops.insert(id, next);
        self.touch(loop_bit(id));
    }

    /// One value for the whole warp: lane 0's.
    pub fn uniform(&mut self, id: ExprId) -> i64 {
        self.fuel = self.fuel.max(64);
        self.need([id]);
        self.eval(id).value[0]
    }

    /// The value of something that is the same in all lanes and does not depend on data; `None` where it is undefined.
    fn scalar(&mut self, id: ExprId) -> Option<i64> {
        let arena = self.arena;
        match arena.node(id) {
            Node::Const(value) => return Some(*value),
            Node::Symbol(Symbol::LoopVar(of, var)) => {
                return self
                    .loops
                    .get(of)?
                    .get(*var as usize)
                    .filter(|value| !value.undefined)
                    .map(|value| value.value[0]);
            }
            Node::Symbol(Symbol::Unknown(index)) => return Some(self.unknown(*index)),
            Node::Symbol(Symbol::BlockIdx(axis)) => return Some(self.block_index[axis.index()]),
            Node::Symbol(Symbol::BlockDim(axis)) => return Some(self.block[axis.index()]),
            Node::Symbol(Symbol::GridDim(axis)) => return Some(self.grid[axis.index()]),
            _ => {}
        }
        if let Some((time, value)) = self.scalars[id.0 as usize]
            && self.is_fresh(arena.deps(id), time)
        {
            return value;
        }
        let value = self.compute_scalar(id);
        self.scalars[id.0 as usize] = Some((self.clock, value));
        value
    }

    fn compute_scalar(&mut self, id: ExprId) -> Option<i64> {
        let arena = self.arena;
        Some(match arena.node(id) {
            Node::Const(value) => *value,
            Node::Sum { constant, terms } => {
                let mut sum = *constant;
                for &(coefficient, factor) in terms {
                    sum = sum.wrapping_add(coefficient.wrapping_mul(self.scalar(factor)?));
                }
                sum
            }
            Node::Product(factors) => {
                let mut product = 1i64;
                for &factor in factors {
                    product = product.wrapping_mul(self.scalar(factor)?);
                }
                product
            }
            Node::Binary { op, unsigned, a, b } => apply(*op, *unsigned, self.scalar(*a)?, self.scalar(*b)?)?,
            Node::Not(a) => i64::from(self.scalar(*a)? == 0),
            Node::Wrap { bytes, signed, a } => wrap(*bytes, *signed, self.scalar(*a)?),
            Node::Select { cond, then, otherwise } => {
                if self.scalar(*cond)? != 0 {
                    self.scalar(*then)?
                } else {
                    self.scalar(*otherwise)?
                }
            }
            Node::Final { of, var } => {
                let value = self.final_value(*of, *var);
                (!value.undefined && value.data.is_none()).then_some(value.value[0])?
            }
            Node::Symbol(_) | Node::Load { .. } | Node::Opaque { .. } => return None,
        })
    }

    pub fn eval(&mut self, id: ExprId) -> Rc<Lanes32> {
        let deps = self.arena.deps(id);
        if let Some((time, value)) = &self.memo[id.0 as usize]
            && self.is_fresh(deps, *time)
        {
            return value.clone();
        }
        if self.fuel == 0 {
            return Rc::new(Lanes32 { undefined: true, ..Lanes32::splat(0) });
        }
        self.fuel -= 1;
        if deps & (TID | DATA) == 0 {
            let value = Rc::new(match self.scalar(id) {
                Some(value) => Lanes32::splat(value),
                None => Lanes32 { undefined: true, ..Lanes32::splat(0) },
            });
            if self.fuel > 0 {
                self.memo[id.0 as usize] = Some((self.clock, value.clone()));
            }
            return value;
        }
        let value = Rc::new(self.compute(id));
        if self.fuel == 0 {
            return value;
        }
        self.memo[id.0 as usize] = Some((self.clock, value.clone()));
        value
    }

    fn is_fresh(&self, mut deps: Deps, time: u64) -> bool {
        while deps != 0 {
            if self.changed[deps.trailing_zeros() as usize] > time {
                return false;
            }
            deps &= deps - 1;
        }
        true
    }

    fn compute(&mut self, id: ExprId) -> Lanes32 {
        let arena = self.arena;
        match arena.node(id) {
            Node::Const(value) => Lanes32::splat(*value),
            Node::Symbol(symbol) => self.symbol(*symbol),
            Node::Sum { constant, terms } => {
                let mut sum = Lanes32::splat(0);
                // What all lanes have in common is added once.
                let mut shared = *constant;
                for &(coefficient, factor) in terms {
                    let value = self.eval(factor);
                    if arena.deps(factor) & (TID | DATA) == 0 {
                        shared = shared.wrapping_add(coefficient.wrapping_mul(value.value[0]));
                    } else {
                        for lane in 0..WARP {
                            sum.value[lane] =
                                sum.value[lane].wrapping_add(coefficient.wrapping_mul(value.value[lane]));
                        }
                    }
                    absorb(&mut sum, &value);
                }
                sum.value.iter_mut().for_each(|value| *value = value.wrapping_add(shared));
                sum
            }
            Node::Product(factors) => {
                let mut product = Lanes32::splat(1);
                for &factor in factors {
                    let factor = self.eval(factor);
                    for lane in 0..WARP {
                        product.value[lane] = product.value[lane].wrapping_mul(factor.value[lane]);
                    }
                    absorb(&mut product, &factor);
                }
                product
            }
            Node::Binary { op, unsigned, a, b } => self.binary(*op, *unsigned, *a, *b),
            Node::Not(a) => self.map(*a, |value| i64::from(value == 0)),
            Node::Wrap { bytes, signed, a } => self.map(*a, |value| wrap(*bytes, *signed, value)),
            Node::Select { cond, then, otherwise } => self.select(*cond, *then, *otherwise),
            Node::Load { base, address } => {
                let address = self.eval(*address);
                self.data(mix(*base, 0x10AD), &[address])
            }
            Node::Opaque { id, inputs } => {
                let inputs: Vec<_> = inputs.iter().map(|&input| self.eval(input)).collect();
                self.data(mix(*id, 0x0A0E), &inputs)
            }
            Node::Final { of, var } => self.final_value(*of, *var),
        }
    }

    fn map(&mut self, a: ExprId, f: impl Fn(i64) -> i64) -> Lanes32 {
        let mut out = (*self.eval(a)).clone();
        out.value.iter_mut().for_each(|value| *value = f(*value));
        out
    }

    fn symbol(&self, symbol: Symbol) -> Lanes32 {
        match symbol {
            Symbol::ThreadIdx(axis) => {
                Lanes32 { value: self.thread[axis.index()], data: None, undefined: false }
            }
            Symbol::BlockIdx(axis) => Lanes32::splat(self.block_index[axis.index()]),
            Symbol::BlockDim(axis) => Lanes32::splat(self.block[axis.index()]),
            Symbol::GridDim(axis) => Lanes32::splat(self.grid[axis.index()]),
            Symbol::Unknown(index) => Lanes32::splat(self.unknown(index)),
            Symbol::LoopVar(of, var) => match self.loops.get(&of).and_then(|vars| vars.get(var as usize)) {
                Some(value) => (**value).clone(),
                None => Lanes32 { undefined: true, ..Lanes32::splat(0) },
            },
        }
    }

    /// Has the unknown a value other than a plausible one?
    pub fn is_bound(&self, index: u32) -> bool {
        self.bound.contains_key(&index)
    }

    fn unknown(&self, index: u32) -> i64 {
        let Some(unknown) = self.arena.unknowns.get(index as usize) else { return 0 };
        if let Some(value) = self.bound.get(&index) {
            return *value;
        }
        match unknown.preferred {
            Some(value) => value,
            None if unknown.is_bool => [1, 0, 1][self.valuation.min(2)],
            None if unknown.small => [3, 2, 4][self.valuation.min(2)],
            None => plausible(self.valuation, index),
        }
    }

    fn binary(&mut self, op: Op, unsigned: bool, a: ExprId, b: ExprId) -> Lanes32 {
        let (a, b) = (self.eval(a), self.eval(b));
        let mut out = Lanes32::splat(0);
        for lane in 0..WARP {
            match apply(op, unsigned, a.value[lane], b.value[lane]) {
                Some(value) => out.value[lane] = value,
                // A made-up value of data that has no meaning here says nothing of the program.
                None => out.undefined |= a.data.is_none() && b.data.is_none(),
            }
        }
        absorb(&mut out, &a);
        absorb(&mut out, &b);
        if let (Op::And | Op::Or, Some(data)) = (op, &mut out.data) {
            // What one side decides alone does not depend on the data of the other.
            let decides = |side: &Lanes32, lane: usize| {
                side.data.as_ref().is_none_or(|data| data[lane] == NO_DATA)
                    && (side.value[lane] == 0) == (op == Op::And)
            };
            for (lane, hash) in data.iter_mut().enumerate() {
                if !out.undefined && (decides(&a, lane) || decides(&b, lane)) {
                    *hash = NO_DATA;
                }
            }
        }
        out
    }

    fn select(&mut self, cond: ExprId, then: ExprId, otherwise: ExprId) -> Lanes32 {
        let cond = self.eval(cond);
        let mask = cond.mask();
        let mut out = match mask {
            u32::MAX => (*self.eval(then)).clone(),
            0 => (*self.eval(otherwise)).clone(),
            _ => {
                let (then, otherwise) = (self.eval(then), self.eval(otherwise));
                let mut out = (*otherwise).clone();
                for lane in (0..WARP).filter(|lane| mask >> lane & 1 == 1) {
                    out.value[lane] = then.value[lane];
                }
                if then.data.is_some() || otherwise.data.is_some() {
                    let mut data = [0; WARP];
                    for (lane, hash) in data.iter_mut().enumerate() {
                        let side = if mask >> lane & 1 == 1 { &then } else { &otherwise };
                        *hash = side.data.as_ref().map_or(0, |data| data[lane]);
                    }
                    out.data = Some(Box::new(data));
                }
                out.undefined = then.undefined || otherwise.undefined;
                out
            }
        };
        absorb(&mut out, &cond);
        out
    }

    fn data(&self, seed: u32, inputs: &[Rc<Lanes32>]) -> Lanes32 {
        let mut hashes = [seed; WARP];
        for input in inputs {
            for (lane, hash) in hashes.iter_mut().enumerate() {
                *hash = mix64(*hash, input.value[lane]);
                if let Some(data) = &input.data {
                    *hash = mix(*hash, data[lane]);
                }
            }
        }
        let value = hashes.map(|hash| plausible_data(self.valuation, hash));
        Lanes32 { value, data: Some(Box::new(hashes)), undefined: false }
    }

    /// The value after a counted loop in closed form: `for (i = a; i < b; i += c)` runs `⌈(b − a)/c⌉` times, and a variable
    /// that gains `d` each time has gained `d` times that. `None` where the loop is not of this kind.
    fn counted_final(&mut self, id: LoopId, var: u32) -> Option<Lanes32> {
        let arena = self.arena;
        let of = arena.loops.get(id.0 as usize)?;
        if of.test_last {
            return None;
        }
        let gain = |var: u32| -> Option<ExprGain> {
            let symbol = Symbol::LoopVar(id, var);
            let next = of.vars.get(var as usize)?.next;
            let is_self = |factor: ExprId| *arena.node(factor) == Node::Symbol(symbol);
            match arena.node(next) {
                Node::Sum { constant, terms } => {
                    let own = terms
                        .iter()
                        .position(|&(coefficient, factor)| coefficient == 1 && is_self(factor))?;
                    let rest: Vec<(i64, ExprId)> = terms
                        .iter()
                        .enumerate()
                        .filter(|(place, _)| *place != own)
                        .map(|(_, term)| *term)
                        .collect();
                    let fixed = rest.iter().all(|&(_, factor)| arena.deps(factor) & loop_bit(id) == 0);
                    fixed.then_some(ExprGain { constant: *constant, rest })
                }
                _ => is_self(next).then_some(ExprGain { constant: 0, rest: Vec::new() }),
            }
        };
        let Node::Binary { op: op @ (Op::Lt | Op::Le), unsigned: false, a, b } = *arena.node(of.cond) else {
            return None;
        };
        // Which side counts?
        let counter = |side: ExprId| match *arena.node(side) {
            Node::Symbol(Symbol::LoopVar(of, var)) if of == id => Some(var),
            _ => None,
        };
        let (counted, bound, upwards) = match (counter(a), counter(b)) {
            (Some(var), None) => (var, b, true),
            (None, Some(var)) => (var, a, false),
            _ => return None,
        };
        if arena.deps(bound) & (loop_bit(id) | DATA) != 0 {
            return None;
        }
        let step = gain(counted)?;
        if !step.rest.is_empty() || step.constant == 0 || (step.constant > 0) != upwards {
            return None;
        }
        let own = gain(var)?;
        let start = self.eval(of.vars.get(counted as usize)?.init);
        let bound = self.eval(bound);
        let mut out = (*self.eval(of.vars.get(var as usize)?.init)).clone();
        let rest: Vec<(i64, Rc<Lanes32>)> =
            own.rest.iter().map(|&(coefficient, factor)| (coefficient, self.eval(factor))).collect();
        if start.data.is_some() || bound.data.is_some() || start.undefined || bound.undefined {
            return None;
        }
        for lane in 0..WARP {
            let distance = if upwards {
                bound.value[lane].checked_sub(start.value[lane])?
            } else {
                start.value[lane].checked_sub(bound.value[lane])?
            };
            let distance = distance.checked_add(i64::from(op == Op::Le))?;
            let size = step.constant.checked_abs()?;
            let trips = if distance <= 0 { 0 } else { distance.checked_add(size - 1)? / size };
            let gained = rest.iter().fold(own.constant, |sum, (coefficient, value)| {
                sum.wrapping_add(coefficient.wrapping_mul(value.value[lane]))
            });
            out.value[lane] = out.value[lane].wrapping_add(trips.wrapping_mul(gained));
        }
        rest.iter().for_each(|(_, value)| absorb(&mut out, value));
        Some(out)
    }

    /// Runs the loop to its end. A condition on data gives data; one that does not end gives an undefined value.
    fn final_value(&mut self, id: LoopId, var: u32) -> Lanes32 {
        let arena = self.arena;
        let Some(of) = arena.loops.get(id.0 as usize) else {
            return Lanes32 { undefined: true, ..Lanes32::splat(0) };
        };
        if let Some(value) = self.counted_final(id, var) {
            return value;
        }
        let saved = self.loops.get(&id).cloned();
        self.start_loop(id);
        let mut live = u32::MAX;
        let mut conditions = Vec::new();
        let mut ended = false;
        let mut rounds = 0;
        // What data make of a variable is not known; a few iterations show which lanes see the same data.
        let by_data = (of.deps | of.vars.get(var as usize).map_or(0, |var| var.deps)) & DATA != 0;
        let most = if by_data { limits::DATA_FINAL_ITERATIONS } else { limits::FINAL_ITERATIONS };
        for iteration in 0..most {
            if iteration > 0 || !of.test_last {
                let cond = self.eval(of.cond);
                live &= cond.mask();
                if cond.data.is_some() {
                    conditions.push(cond);
                }
            }
            if live == 0 || conditions.len() > limits::DATA_ITERATIONS || self.fuel == 0 {
                ended = self.fuel > 0;
                break;
            }
            self.step_loop(id, live);
            rounds += 1;
        }
        let value = self.loops.get(&id).and_then(|vars| vars.get(var as usize)).cloned();
        match saved {
            Some(saved) => self.loops.insert(id, saved),
            None => self.loops.remove(&id),
        };
        self.touch(loop_bit(id));
        let mut value = value.map_or_else(|| Lanes32::splat(0), |value| (*value).clone());
        if !conditions.is_empty() {
            conditions.push(Rc::new(value.clone()));
            return self.data(mix(id.0, var ^ 0xF1A1), &conditions);
        }
        value.undefined |= !ended && (!by_data || self.fuel == 0);
        // A count of what data say is as unknown as the data: what came out is one of many results. What no round has
        // changed is what it was.
        let is_changed = rounds > 0;
        if (by_data && is_changed || value.data.is_some()) && !value.undefined {
            return self.data(mix(id.0, var ^ 0xF1A1), &[Rc::new(value)]);
        }
        value
    }
}

/// What a loop variable gains per iteration: a constant and terms that the loop does not change.
struct ExprGain {
    constant: i64,
    rest: Vec<(i64, ExprId)>,
}

fn absorb(out: &mut Lanes32, input: &Lanes32) {
    out.undefined |= input.undefined;
    let Some(more) = &input.data else { return };
    match &mut out.data {
        None => out.data = Some(more.clone()),
        Some(data) => data.iter_mut().zip(more.iter()).for_each(|(hash, more)| *hash = mix(*hash, *more)),
    }
}

/// The thread indices of a warp's lanes and the mask of lanes that exist, from the linear thread id
/// `x + y·bx + z·bx·by` (hardware.md §1).
pub fn threads(block: [i64; 3], warp: i64) -> ([[i64; WARP]; 3], u32) {
    let mut thread = [[0; WARP]; 3];
    let mut mask = 0;
    let [bx, by, bz] = block.map(|extent| extent.max(1));
    let [xs, ys, zs] = &mut thread;
    for (lane, ((x, y), z)) in xs.iter_mut().zip(ys).zip(zs).enumerate() {
        let linear = warp * WARP as i64 + lane as i64;
        if linear < bx * by * bz {
            mask |= 1 << lane;
        }
        *x = linear % bx;
        *y = linear / bx % by;
        *z = linear / (bx * by) % bz;
    }
    (thread, mask)
}
