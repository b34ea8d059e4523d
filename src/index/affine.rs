//! The affine view: what an address depends on, in words.

use super::expr::{Arena, Axis, BID, DATA, Deps, ExprId, Node, Op, Symbol, TID, UNKNOWN, loop_bit};

/// The part of an address that multiplies one axis of `threadIdx`.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneTerm {
    pub axis: Axis,
    /// The coefficient where it is a number; `None` where unknowns or loop variables are in it.
    pub coefficient: Option<i64>,
    /// The coefficient in words: `4·n`.
    pub text: String,
}

/// A number that divides an expression whatever its symbols are; 0 where it is 0. At most `depth` operators are looked into.
pub fn multiple_of(arena: &Arena, id: ExprId, depth: u32) -> i64 {
    if depth == 0 {
        return 1;
    }
    let of = |id: ExprId| multiple_of(arena, id, depth - 1);
    match arena.node(id) {
        Node::Const(value) => value.saturating_abs(),
        Node::Sum { constant, terms } => {
            let of_term =
                |&(coefficient, id): &(i64, ExprId)| of(id).saturating_mul(coefficient.saturating_abs());
            terms.iter().map(of_term).fold(constant.saturating_abs(), gcd)
        }
        Node::Product(factors) => factors.iter().map(|&factor| of(factor)).fold(1, i64::saturating_mul),
        Node::Binary { op: Op::Min | Op::Max, a, b, .. } => gcd(of(*a), of(*b)),
        Node::Binary { op: Op::Shl, a, b, .. } => match arena.as_const(*b) {
            Some(bits @ 0..=32) => of(*a).saturating_mul(1 << bits),
            _ => 1,
        },
        // `(n + 31) & ~31`
        Node::Binary { op: Op::And, b, .. } => match arena.as_const(*b) {
            Some(mask) if mask != 0 => 1 << mask.trailing_zeros().min(32),
            _ => 1,
        },
        Node::Select { then, otherwise, .. } => gcd(of(*then), of(*otherwise)),
        Node::Wrap { a, .. } => of(*a),
        _ => 1,
    }
}

/// The greatest common divisor of two numbers that are not negative.
pub fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The lane terms of a sum, or `None` where `threadIdx` is inside `/ % & ^`, a ternary or a product with itself.
pub fn lane_terms(arena: &Arena, address: ExprId) -> Option<Vec<LaneTerm>> {
    let mut out = Vec::new();
    collect(arena, 1, address, 0, &mut out)?;
    Some(out)
}

/// Adds the lane terms of `scale · address`.
fn collect(arena: &Arena, scale: i64, address: ExprId, depth: u32, out: &mut Vec<LaneTerm>) -> Option<()> {
    if depth > 8 {
        return None;
    }
    let whole = [(1, address)];
    let terms = match arena.node(address) {
        Node::Sum { terms, .. } => &terms[..],
        _ => &whole[..],
    };
    for &(coefficient, factor) in terms {
        let coefficient = coefficient.wrapping_mul(scale);
        if own_deps(arena, factor) & TID == 0 {
            continue;
        }
        match arena.node(factor) {
            Node::Symbol(Symbol::ThreadIdx(axis)) => out.push(LaneTerm {
                axis: *axis,
                coefficient: Some(coefficient),
                text: coefficient.to_string(),
            }),
            // A counter differs between lanes as its start does.
            Node::Symbol(Symbol::LoopVar(..)) => {
                collect(arena, coefficient, start_of(arena, factor)?, depth + 1, out)?;
            }
            Node::Product(factors) => out.push(product_term(arena, coefficient, factors)?),
            _ => return None,
        }
    }
    Some(())
}

fn product_term(arena: &Arena, coefficient: i64, factors: &[ExprId]) -> Option<LaneTerm> {
    let varying: Vec<_> = factors.iter().filter(|&&id| own_deps(arena, id) & TID != 0).collect();
    let [only] = varying.as_slice() else { return None };
    let only = **only;
    let Node::Symbol(Symbol::ThreadIdx(axis)) = arena.node(only) else { return None };
    let rest: Vec<_> =
        factors.iter().filter(|&&id| id != only).map(|&id| arena.display(id).to_string()).collect();
    let rest = rest.join("·");
    let text = if coefficient == 1 { rest } else { format!("{coefficient}·{rest}") };
    Some(LaneTerm { axis: *axis, coefficient: None, text })
}

/// Where a loop variable starts, if all lanes step alike.
pub fn start_of(arena: &Arena, variable: ExprId) -> Option<ExprId> {
    let Node::Symbol(Symbol::LoopVar(of, var)) = arena.node(variable) else { return None };
    let var = arena.loops.get(of.0 as usize)?.vars.get(*var as usize)?;
    let Node::Sum { terms, .. } = arena.node(var.next) else { return None };
    let (same, steps): (Vec<_>, Vec<_>) = terms.iter().partition(|(_, id)| *id == variable);
    let alike = steps.iter().all(|(_, id)| own_deps(arena, *id) & TID == 0);
    (matches!(same[..], [(1, _)]) && alike).then_some(var.init)
}

/// What a value depends on besides the addresses of what it loads.
pub fn deps_beside_data(arena: &Arena, root: ExprId) -> Deps {
    gather_deps(arena, root, false)
}

/// What a value itself depends on. [`Arena::deps`] gives every variable of a loop what any of them depends on.
pub fn own_deps(arena: &Arena, root: ExprId) -> Deps {
    gather_deps(arena, root, true)
}

fn gather_deps(arena: &Arena, root: ExprId, into_loads: bool) -> Deps {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut stack = vec![root];
    let mut deps = 0;
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Symbol(Symbol::LoopVar(of, var)) => {
                deps |= loop_bit(*of);
                match arena.loops.get(of.0 as usize).and_then(|of| of.vars.get(*var as usize)) {
                    Some(var) => stack.extend([var.init, var.next]),
                    None => deps |= arena.deps(id),
                }
            }
            Node::Symbol(_) | Node::Final { .. } => deps |= arena.deps(id),
            Node::Load { .. } | Node::Opaque { .. } => {
                deps |= DATA;
                if into_loads {
                    stack.extend(arena.children(id));
                }
            }
            _ => stack.extend(arena.children(id)),
        }
    }
    deps
}

/// Do the differences between lanes, and the place within a 128-byte line, depend on no unknown?
pub fn is_shaped(arena: &Arena, address: ExprId) -> bool {
    if arena.deps(address) & UNKNOWN == 0 {
        return true;
    }
    let Node::Sum { terms, .. } = arena.node(address) else { return false };
    terms.iter().all(|&(coefficient, factor)| {
        arena.deps(factor) & UNKNOWN == 0 || (coefficient % 128 == 0 && arena.deps(factor) & TID == 0)
    })
}

/// The unknowns that decide an expression, by index, sorted: not those behind what memory holds or behind code that is not
/// seen, whose values are not known whatever these are.
pub fn unknowns(arena: &Arena, roots: &[ExprId]) -> Vec<u32> {
    gather_unknowns(arena, roots, true)
}

/// The same but for those that are only compared for equality: a flag is no size.
pub fn sizes(arena: &Arena, roots: &[ExprId]) -> Vec<u32> {
    gather_unknowns(arena, roots, false)
}

fn gather_unknowns(arena: &Arena, roots: &[ExprId], into_equalities: bool) -> Vec<u32> {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut found = std::collections::BTreeSet::new();
    let mut stack = roots.to_vec();
    while let Some(id) = stack.pop() {
        if arena.deps(id) & UNKNOWN == 0 || !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Symbol(Symbol::Unknown(index)) => {
                found.insert(*index);
            }
            Node::Symbol(Symbol::LoopVar(of, _)) | Node::Final { of, .. } => {
                if let Some(of) = arena.loops.get(of.0 as usize) {
                    stack.push(of.cond);
                    stack.extend(of.vars.iter().flat_map(|var| [var.init, var.next]));
                }
            }
            Node::Load { .. } | Node::Opaque { .. } => {}
            Node::Binary { op: Op::Eq | Op::Ne, .. } if !into_equalities => {}
            _ => stack.extend(arena.children(id)),
        }
    }
    found.into_iter().collect()
}

/// The axes of `blockIdx` that a value depends on, besides what it loads.
pub fn block_axes(arena: &Arena, root: ExprId) -> [bool; 3] {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut axes = [false; 3];
    let mut stack = vec![root];
    while let Some(id) = stack.pop() {
        if arena.deps(id) & BID == 0 || !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Symbol(Symbol::BlockIdx(axis)) => {
                if let Some(axis) = axes.get_mut(axis.index()) {
                    *axis = true;
                }
            }
            Node::Symbol(Symbol::LoopVar(of, _)) | Node::Final { of, .. } => {
                if let Some(of) = arena.loops.get(of.0 as usize) {
                    stack.push(of.cond);
                    stack.extend(of.vars.iter().flat_map(|var| [var.init, var.next]));
                }
            }
            Node::Load { .. } | Node::Opaque { .. } => {}
            _ => stack.extend(arena.children(id)),
        }
    }
    axes
}

/// A number that tells the threads of one block apart, or of one warp: tests of it do not ask where an array ends.
pub fn is_of_block(arena: &Arena, id: ExprId) -> bool {
    is_lane(arena, id) || arena.deps(id) & !super::expr::DIM == TID
}

/// `threadIdx.x % 32`, in any of its spellings: a remainder, or bits, of less than a warp.
pub fn is_lane(arena: &Arena, id: ExprId) -> bool {
    let Node::Binary { op, a, b, .. } = arena.node(id) else { return false };
    let Node::Const(number) = arena.node(*b) else { return false };
    let most = match op {
        super::expr::Op::Rem => number - 1,
        super::expr::Op::And => *number,
        _ => return false,
    };
    (1..super::eval::WARP as i64).contains(&most) && arena.deps(*a) & TID != 0
}
