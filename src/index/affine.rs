//! The affine view: what an address depends on, in words.

use super::expr::{Arena, Axis, ExprId, Node, Symbol, TID, UNKNOWN};

/// The part of an address that multiplies one axis of `threadIdx`.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneTerm {
    pub axis: Axis,
    /// The coefficient where it is a number; `None` where unknowns or loop variables are in it.
    pub coefficient: Option<i64>,
    /// The coefficient in words: `4·n`.
    pub text: String,
}

/// The lane terms of a sum, or `None` where `threadIdx` is inside `/ % & ^`, a ternary or a product with itself.
pub fn lane_terms(arena: &Arena, address: ExprId) -> Option<Vec<LaneTerm>> {
    let whole = [(1, address)];
    let terms = match arena.node(address) {
        Node::Sum { terms, .. } => &terms[..],
        _ => &whole[..],
    };
    let mut out = Vec::new();
    for &(coefficient, factor) in terms {
        if arena.deps(factor) & TID == 0 {
            continue;
        }
        match arena.node(factor) {
            Node::Symbol(Symbol::ThreadIdx(axis)) => out.push(LaneTerm {
                axis: *axis,
                coefficient: Some(coefficient),
                text: coefficient.to_string(),
            }),
            Node::Product(factors) => {
                let varying: Vec<_> = factors.iter().filter(|&&id| arena.deps(id) & TID != 0).collect();
                let [only] = varying.as_slice() else { return None };
                let only = **only;
                let Node::Symbol(Symbol::ThreadIdx(axis)) = arena.node(only) else { return None };
                let rest: Vec<_> = factors
                    .iter()
                    .filter(|&&id| id != only)
                    .map(|&id| arena.display(id).to_string())
                    .collect();
                let rest = rest.join("·");
                let text = if coefficient == 1 { rest } else { format!("{coefficient}·{rest}") };
                out.push(LaneTerm { axis: *axis, coefficient: None, text });
            }
            _ => return None,
        }
    }
    Some(out)
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

/// The unknowns in an expression, by index, sorted.
pub fn unknowns(arena: &Arena, roots: &[ExprId]) -> Vec<u32> {
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
            _ => stack.extend(arena.children(id)),
        }
    }
    found.into_iter().collect()
}
