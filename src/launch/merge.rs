//! Scalar shared accesses that the compiler makes wide ones.
//!
//! nvcc moves neighbouring elements of a declared array by one instruction where their order and the alignment of the
//! index are plain: `s[2 * t]` and `s[2 * t + 1]` become one load of 8 bytes, four fields of a struct one of 16, and so
//! do the iterations of an unrolled `for (k…) … s[t][k]`, a row whose pitch is a multiple of 16 bytes (measured with
//! nvcc 13 for sm_90: `LDS.128`, for a broadcast 2 wavefronts of 2). A pitch of 33 words keeps them apart.

use crate::index::expr::{self, Arena, ExprId, LoopId, LoopVar, Node, Op, Symbol};
use crate::ir::facts::{MemorySpace, Operation};
use crate::lower::exec::{AccessKind, RawAccess};
use crate::lower::value::Base;

/// Iterations of a loop that nvcc unrolls whole.
const UNROLLED: i64 = 32;

/// The widest instruction.
const WIDEST: i64 = 16;

/// How deep expressions are looked into.
const DEEPEST: u32 = 6;

/// The accesses with [`RawAccess::merged`] set to the bytes of the instruction that they become part of.
pub fn merged(arena: &Arena, bases: &[Base], accesses: &[RawAccess]) -> Vec<RawAccess> {
    let mut out = accesses.to_vec();
    for place in 0..accesses.len() {
        let Some(access) = accesses.get(place).filter(|access| may_merge(bases, access)) else { continue };
        let mut wide = WIDEST;
        while wide > access.width && out.get(place).is_some_and(|out| out.merged.is_none()) {
            let parts = with_neighbours(arena, accesses, place, wide);
            for part in parts.into_iter().flatten() {
                if let Some(part) = out.get_mut(part) {
                    part.merged = Some(wide);
                }
            }
            let before = over_loops(arena, accesses, access, wide);
            for part in before.into_iter().flat_map(|before| before.into_iter().chain([place])) {
                if let Some(part) = out.get_mut(part) {
                    part.merged = Some(wide);
                }
            }
            wide /= 2;
        }
    }
    out
}

/// A plain scalar of an array whose start the compiler can align.
fn may_merge(bases: &[Base], access: &RawAccess) -> bool {
    access.kind == AccessKind::Plain
        && access.space == MemorySpace::Shared
        && access.operation != Operation::Atomic
        && access.width == access.bytes
        && bases.get(access.base as usize).is_some_and(|base| !base.extents.is_empty() || base.span.is_some())
}

/// The accesses that with this one, the lowest, fill an aligned piece of `wide` bytes in each lane.
fn with_neighbours(arena: &Arena, accesses: &[RawAccess], place: usize, wide: i64) -> Option<Vec<usize>> {
    let low = accesses.get(place)?;
    if !is_multiple(arena, low.offset, wide) {
        return None;
    }
    let alike = |other: &RawAccess| {
        other.base == low.base
            && other.operation == low.operation
            && other.kind == low.kind
            && other.width == low.width
            && other.guard == low.guard
            && other.loops == low.loops
            && other.fence == low.fence
    };
    let mut parts = vec![place];
    for part in 1..wide / low.width {
        let mate = accesses.iter().enumerate().find(|(at, other)| {
            alike(other)
                && differs_by(arena, low.offset, other.offset) == Some(part * low.width)
                && !is_kept_apart(accesses, low, place, *at)
        });
        parts.push(mate?.0);
    }
    Some(parts)
}

/// Another kind of access to the same array lies between the two.
fn is_kept_apart(accesses: &[RawAccess], low: &RawAccess, one: usize, other: usize) -> bool {
    let between = accesses.get(one.min(other)..one.max(other)).unwrap_or(&[]);
    between.iter().any(|access| access.base == low.base && access.operation != low.operation)
}

/// [`over_iterations`] of the innermost loop, or of one around it where all from there on are unrolled whole: where they make no more
/// copies of the access than [`UNROLLED`].
fn over_loops(arena: &Arena, accesses: &[RawAccess], access: &RawAccess, wide: i64) -> Option<Vec<usize>> {
    let (&innermost, outer) = access.loops.split_last()?;
    if let Some(before) = over_iterations(arena, accesses, access, innermost, wide) {
        return Some(before);
    }
    let mut copies = count_of(arena, innermost)?;
    for &of in outer.iter().rev() {
        copies *= count_of(arena, of)?;
        if copies > UNROLLED {
            return None;
        }
        if let Some(before) = over_iterations(arena, accesses, access, of, wide) {
            return before.is_empty().then_some(before);
        }
    }
    None
}

/// How often a loop runs, where it is short.
fn count_of(arena: &Arena, of: LoopId) -> Option<i64> {
    let vars = arena.loops.get(of.0 as usize)?.vars.len() as u32;
    let count = (0..vars).find_map(|var| {
        let (init, step) = counter_of(arena, of, var)?;
        iterations_of(arena, of, var, init, step)
    });
    count.filter(|count| (1..=UNROLLED).contains(count))
}

/// Do the iterations of a loop access aligned pieces part by part, with nothing in between that keeps them apart?
/// Then the accesses before the loop that begin the first piece: none where the loop itself begins it. Stores are made one
/// where the loop is short enough to be unrolled whole (nvcc 13 for sm_90: `STS.128`).
fn over_iterations(
    arena: &Arena,
    accesses: &[RawAccess],
    access: &RawAccess,
    inner: LoopId,
    wide: i64,
) -> Option<Vec<usize>> {
    if access.fenced_loops.contains(&inner) {
        return None;
    }
    let walk = walk_in_step(arena, access, inner, wide)?;
    let is_load = access.operation == Operation::Load;
    let mut inside =
        accesses.iter().filter(|other| other.space == MemorySpace::Shared && other.loops.contains(&inner));
    let apart = if is_load {
        inside.any(|other| other.operation != Operation::Load)
    } else {
        // Another part of the same array is no matter where it is surely another.
        let length = walk.iterations.unwrap_or(i64::MAX / WIDEST) * access.width;
        let is_elsewhere = |other: &RawAccess| {
            other.operation == Operation::Store
                && differs_by(arena, access.offset, other.offset)
                    .is_some_and(|distance| distance.abs() >= length)
        };
        inside.any(|other| other.base == access.base && other.offset != access.offset && !is_elsewhere(other))
    };
    if apart {
        return None;
    }
    let front = walk.start.rem_euclid(wide);
    let reaches = walk.iterations.is_none_or(|count| front + count * access.width >= wide);
    let known = if is_load {
        front == 0 || walk.iterations.is_some()
    } else {
        walk.iterations.is_some_and(|count| count <= UNROLLED)
    };
    if front % access.width != 0 || !reaches || !known {
        return None;
    }
    let before = (0..front / access.width).map(|part| {
        let constant = walk.start - front + part * access.width;
        accesses.iter().position(|other| {
            other.base == access.base
                && other.operation == access.operation
                && other.kind == access.kind
                && other.width == access.width
                && access.loops.strip_suffix(&[inner]) == Some(other.loops.as_slice())
                && arena.terms(other.offset) == (constant, walk.rest.clone())
        })
    });
    before.collect()
}

/// How a loop's accesses go through memory, an element an iteration.
struct Walk {
    /// The offset in the first iteration is this plus the rest, whose factors are multiples of the piece.
    start: i64,
    rest: Vec<(i64, ExprId)>,
    /// Where the loop says it as `counter < constant`.
    iterations: Option<i64>,
}

fn walk_in_step(arena: &Arena, access: &RawAccess, inner: LoopId, wide: i64) -> Option<Walk> {
    let (constant, terms) = arena.terms(access.offset);
    let (moving, rest): (Vec<_>, Vec<_>) =
        terms.into_iter().partition(|(_, id)| !arena.loop_vars_in(*id, inner).is_empty());
    if rest.iter().any(|&(coefficient, id)| coefficient * divisor(arena, id, DEEPEST) % wide != 0) {
        return None;
    }
    let mut vars = moving.iter().flat_map(|(_, id)| arena.loop_vars_in(*id, inner));
    let var = vars.next()?;
    if vars.any(|other| other != var) {
        return None;
    }
    let (init, step) = counter_of(arena, inner, var)?;
    let is_var = |id: ExprId| *arena.node(id) == Node::Symbol(Symbol::LoopVar(inner, var));
    let iterations = iterations_of(arena, inner, var, init, step);
    let offset = |iteration: i64| {
        let parts = moving.iter().map(|&(coefficient, id)| {
            Some(coefficient * value_at(arena, id, inner, init + iteration * step, DEEPEST)?)
        });
        parts.sum::<Option<i64>>()
    };
    let is_element_apart = match moving[..] {
        [(coefficient, id)] if is_var(id) => coefficient * step == access.width,
        _ => {
            let count = iterations.filter(|&count| count <= UNROLLED)?;
            (1..count)
                .all(|next| Some(access.width) == offset(next).zip(offset(next - 1)).map(|(b, a)| b - a))
        }
    };
    is_element_apart.then_some(Walk { start: constant + offset(0)?, rest, iterations })
}

/// Is `one`, behind a loop that is unrolled whole, what an iteration of `looped` accesses?
pub fn is_of_an_iteration(arena: &Arena, looped: &RawAccess, one: &RawAccess) -> bool {
    let Some((&inner, outer)) = looped.loops.split_last() else { return false };
    let (constant, terms) = arena.terms(looped.offset);
    let (moving, rest): (Vec<_>, Vec<_>) =
        terms.into_iter().partition(|(_, id)| !arena.loop_vars_in(*id, inner).is_empty());
    let (wanted, others) = arena.terms(one.offset);
    let [(coefficient, counter)] = moving[..] else { return false };
    let Node::Symbol(Symbol::LoopVar(owner, var)) = *arena.node(counter) else { return false };
    if outer != one.loops || rest != others || owner != inner {
        return false;
    }
    let Some((init, step)) = counter_of(arena, inner, var) else { return false };
    let count = iterations_of(arena, inner, var, init, step).unwrap_or(0);
    (0..count.min(UNROLLED)).any(|iteration| constant + coefficient * (init + iteration * step) == wanted)
}

/// How often a loop runs that says so as `counter < constant`.
fn iterations_of(arena: &Arena, inner: LoopId, var: u32, init: i64, step: i64) -> Option<i64> {
    let of = arena.loops.get(inner.0 as usize)?;
    let is_var = |id: ExprId| *arena.node(id) == Node::Symbol(Symbol::LoopVar(inner, var));
    match *arena.node(of.cond) {
        Node::Binary { op: Op::Lt, a, b, .. } if is_var(a) && step > 0 => {
            arena.as_const(b).map(|end| (end - init + step - 1) / step)
        }
        _ => None,
    }
}

/// What an expression of nothing but the counter of a loop is where the counter is `value`.
fn value_at(arena: &Arena, id: ExprId, inner: LoopId, value: i64, depth: u32) -> Option<i64> {
    let depth = depth.checked_sub(1)?;
    let of = |id: ExprId| value_at(arena, id, inner, value, depth);
    match arena.node(id) {
        Node::Const(value) => Some(*value),
        Node::Symbol(Symbol::LoopVar(owner, _)) if *owner == inner => Some(value),
        Node::Sum { constant, terms } => terms
            .iter()
            .map(|&(coefficient, id)| of(id)?.checked_mul(coefficient))
            .try_fold(*constant, |sum, term| sum.checked_add(term?)),
        Node::Product(factors) => factors.iter().try_fold(1_i64, |product, &id| product.checked_mul(of(id)?)),
        &Node::Binary { op, unsigned, a, b } => expr::apply(op, unsigned, of(a)?, of(b)?),
        &Node::Wrap { bytes, signed, a } => Some(expr::wrap(bytes, signed, of(a)?)),
        _ => None,
    }
}

/// `b − a`, where it is a number.
fn differs_by(arena: &Arena, a: ExprId, b: ExprId) -> Option<i64> {
    let ((ca, ta), (cb, tb)) = (arena.terms(a), arena.terms(b));
    (ta == tb).then(|| cb.wrapping_sub(ca))
}

/// Is every term of the sum a multiple of `of`, a power of two? A counter is one of its step, from its start.
fn is_multiple(arena: &Arena, id: ExprId, of: i64) -> bool {
    let (constant, terms) = arena.terms(id);
    let mut rest = constant;
    for (coefficient, id) in terms {
        if coefficient * divisor(arena, id, DEEPEST) % of == 0 {
            continue;
        }
        let Node::Symbol(Symbol::LoopVar(owner, var)) = *arena.node(id) else { return false };
        let Some((init, step)) = counter_of(arena, owner, var) else { return false };
        if coefficient * step % of != 0 {
            return false;
        }
        rest += coefficient * init;
    }
    rest % of == 0
}

/// The largest power of two, up to the widest instruction, that is seen to divide the value.
fn divisor(arena: &Arena, id: ExprId, depth: u32) -> i64 {
    let power = |value: i64| 1 << value.trailing_zeros().min(WIDEST.trailing_zeros());
    let Some(depth) = depth.checked_sub(1) else { return 1 };
    let of = |id: ExprId| divisor(arena, id, depth);
    let found = match *arena.node(id) {
        Node::Const(value) => value,
        Node::Sum { constant, ref terms } => {
            let parts = terms.iter().map(|&(coefficient, id)| power(coefficient) * of(id));
            parts.fold(power(constant), i64::min)
        }
        Node::Product(ref factors) => factors.iter().fold(1, |product, &id| power(product * of(id))),
        Node::Symbol(Symbol::LoopVar(owner, var)) | Node::Final { of: owner, var, .. } => {
            let var_of = arena.loops.get(owner.0 as usize).and_then(|of| of.vars.get(var as usize));
            let is_self = |id: ExprId| *arena.node(id) == Node::Symbol(Symbol::LoopVar(owner, var));
            match var_of.map(|var| (var.init, arena.terms(var.next))) {
                Some((init, (constant, terms))) if terms.iter().any(|&(by, id)| by == 1 && is_self(id)) => {
                    let steps = terms.iter().filter(|(_, id)| !is_self(*id));
                    steps.map(|&(by, id)| power(by) * of(id)).fold(power(constant).min(of(init)), i64::min)
                }
                _ => 1,
            }
        }
        Node::Select { then, otherwise, .. } => of(then).min(of(otherwise)),
        Node::Binary { op: Op::Min | Op::Max | Op::Rem, a, b, .. } => of(a).min(of(b)),
        Node::Binary { op: Op::And, a, b, .. } => of(a).max(of(b)),
        Node::Binary { op: Op::Shl, a, b, .. } => {
            arena.as_const(b).map_or(of(a), |by| of(a) << by.clamp(0, WIDEST))
        }
        Node::Wrap { a, .. } => of(a),
        _ => 1,
    };
    power(found)
}

/// Start and step of a loop variable that is a counter with constants for both.
fn counter_of(arena: &Arena, of: LoopId, var: u32) -> Option<(i64, i64)> {
    let LoopVar { init, next, .. } = arena.loops.get(of.0 as usize)?.vars.get(var as usize)?;
    let (step, terms) = arena.terms(*next);
    let [(1, before)] = terms[..] else { return None };
    let is_self = *arena.node(before) == Node::Symbol(Symbol::LoopVar(of, var));
    Some((arena.as_const(*init).filter(|_| is_self)?, step))
}
