//! Scalar shared accesses that the compiler makes wide ones.
//!
//! nvcc moves neighbouring elements of a declared array by one instruction where their order and the alignment of the
//! index are plain: `s[2 * t]` and `s[2 * t + 1]` become one load of 8 bytes, four fields of a struct one of 16, and so
//! do the iterations of an unrolled `for (k…) … s[t][k]`, a row whose pitch is a multiple of 16 bytes (measured with
//! nvcc 13 for sm_90: `LDS.128`, for a broadcast 2 wavefronts of 2). A pitch of 33 words keeps them apart.

use crate::index::expr::{Arena, ExprId, LoopId, Node, Op, Symbol};
use crate::ir::facts::{MemorySpace, Operation};
use crate::lower::exec::{AccessKind, RawAccess};
use crate::lower::value::Base;

/// Iterations of a loop that nvcc unrolls whole.
const UNROLLED: i64 = 32;

/// The widest instruction.
const WIDEST: i64 = 16;

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
            let before = over_iterations(arena, accesses, access, wide);
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
            && other.calls == low.calls
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

/// Do the iterations of the innermost loop access aligned pieces part by part, with nothing in between that keeps them apart?
/// Then the accesses before the loop that begin the first piece: none where the loop itself begins it. Stores are made one
/// where the loop is short enough to be unrolled whole (nvcc 13 for sm_90: `STS.128`).
fn over_iterations(
    arena: &Arena,
    accesses: &[RawAccess],
    access: &RawAccess,
    wide: i64,
) -> Option<Vec<usize>> {
    let &inner = access.loops.last()?;
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
    let of = arena.loops.get(inner.0 as usize)?;
    let (constant, terms) = arena.terms(access.offset);
    let mut walk = Walk { start: constant, rest: Vec::new(), iterations: None };
    let mut steps = false;
    for (coefficient, id) in terms {
        match arena.node(id) {
            Node::Symbol(Symbol::LoopVar(owner, var)) if *owner == inner => {
                let var = of.vars.get(*var as usize)?;
                let Node::Const(init) = arena.node(var.init) else { return None };
                if coefficient != access.width || differs_by(arena, id, var.next) != Some(1) {
                    return None;
                }
                walk.start += coefficient * init;
                if let Node::Binary { op: Op::Lt, a, b, .. } = arena.node(of.cond)
                    && *a == id
                    && let Node::Const(end) = arena.node(*b)
                {
                    walk.iterations = Some(end - init);
                }
                steps = true;
            }
            _ if coefficient % wide == 0 => walk.rest.push((coefficient, id)),
            _ => return None,
        }
    }
    steps.then_some(walk)
}

/// `b − a`, where it is a number.
fn differs_by(arena: &Arena, a: ExprId, b: ExprId) -> Option<i64> {
    let ((ca, ta), (cb, tb)) = (arena.terms(a), arena.terms(b));
    (ta == tb).then(|| cb.wrapping_sub(ca))
}

/// Is every term of the sum a multiple of `of`? A counter is one of its step, from its start.
fn is_multiple(arena: &Arena, id: ExprId, of: i64) -> bool {
    let (constant, terms) = arena.terms(id);
    let mut rest = constant;
    for (coefficient, id) in terms {
        if coefficient % of == 0 {
            continue;
        }
        let Some((init, step)) = counter(arena, id) else { return false };
        if coefficient * step % of != 0 {
            return false;
        }
        rest += coefficient * init;
    }
    rest % of == 0
}

/// Start and step of a loop variable that is a counter with constants for both.
fn counter(arena: &Arena, id: ExprId) -> Option<(i64, i64)> {
    let Node::Symbol(Symbol::LoopVar(of, var)) = arena.node(id) else { return None };
    let var = arena.loops.get(of.0 as usize)?.vars.get(*var as usize)?;
    let Node::Const(init) = arena.node(var.init) else { return None };
    Some((*init, differs_by(arena, id, var.next)?))
}
