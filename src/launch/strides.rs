//! Distances between lanes that the source leaves open: accesses that have no number whatever is tried.

use super::kernel::{Executed, is_read};
use crate::index::affine;
use crate::index::expr::{Arena, DATA, DIM, ExprId, Node, Op, Symbol, TID, UNKNOWN};
use crate::ir::facts::MemorySpace;
use crate::lower::exec::{AccessKind, RawAccess};

/// Accesses that have no number whatever the lanes do.
pub fn not_measured(arena: &Arena, raw: &RawAccess, kernel: &Executed) -> Option<String> {
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
    let is_read_step = || steps(arena, raw, kernel).into_iter().any(|step| is_read(arena, step));
    if has_data_stride(arena, raw) || is_read_step() {
        return Some("the distance between lanes is a number of the host's that is not known".to_owned());
    }
    if has_open_shift(arena, raw) {
        return Some(
            "the lanes' index is shifted by a number that is not known, as a division by multiplying is"
                .to_owned(),
        );
    }
    if raw.space == MemorySpace::Shared && has_open_step(arena, raw) {
        return Some("the distance between lanes in shared memory is a size that is not known".to_owned());
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

/// `(magic * i) >> shift` with lanes along `i`: made-up values say nothing of what the pair was computed to be.
fn has_open_shift(arena: &Arena, raw: &RawAccess) -> bool {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut stack = vec![raw.offset];
    while let Some(id) = stack.pop() {
        if arena.deps(id) & TID == 0 || arena.deps(id) & (UNKNOWN | DATA) == 0 || !seen.insert(id) {
            continue;
        }
        if let Node::Binary { op: Op::Shr | Op::Shl, a, b, .. } = arena.node(id)
            && arena.deps(*a) & TID != 0
            && is_open(arena, *b)
        {
            return true;
        }
        stack.extend(arena.children(id));
    }
    false
}

/// Is it made of a number that is not known? What a loop of the host computed from sizes is as good as the sizes.
fn is_open(arena: &Arena, id: ExprId) -> bool {
    match arena.node(id) {
        Node::Final { .. } => arena.deps(id) & DATA != 0,
        _ if arena.deps(id) & (UNKNOWN | DATA) == 0 => false,
        Node::Load { .. } | Node::Opaque { .. } | Node::Symbol(_) => true,
        _ => arena.children(id).into_iter().any(|child| is_open(arena, child)),
    }
}

/// `s[threadIdx.x * n]`: shared memory is small, and so is what a size that nobody gives can be there.
fn has_open_step(arena: &Arena, raw: &RawAccess) -> bool {
    let (_, terms) = arena.terms(raw.offset);
    let by_lane = |id: ExprId| affine::deps_beside_data(arena, id) & TID != 0;
    let is_preferred = |id: ExprId| {
        matches!(arena.node(id), Node::Symbol(Symbol::Unknown(index))
            if arena.unknowns.get(*index as usize).is_some_and(|unknown| unknown.preferred.is_some()))
    };
    let is_open = |&id: &ExprId| !by_lane(id) && arena.deps(id) & (UNKNOWN | DATA) != 0 && !is_preferred(id);
    // Rows of threads may be those of other warps.
    let is_column = |&id: &ExprId| {
        by_lane(id) && !matches!(arena.node(id), Node::Symbol(Symbol::ThreadIdx(axis)) if axis.index() > 0)
    };
    terms.iter().any(|(_, id)| match arena.node(*id) {
        Node::Product(factors) => factors.iter().any(is_open) && factors.iter().any(is_column),
        _ => false,
    })
}

/// The template argument, not given anywhere, that the distance between lanes is a multiple of.
fn open_template_stride(arena: &Arena, raw: &RawAccess) -> Option<String> {
    let (_, mut terms) = arena.terms(raw.offset);
    // A counter differs between lanes as its start does.
    for (_, id) in terms.clone() {
        if let Node::Symbol(Symbol::LoopVar(of, var)) = arena.node(id)
            && let Some(var) = arena.loops.get(of.0 as usize).and_then(|of| of.vars.get(*var as usize))
        {
            terms.extend(arena.terms(var.init).1);
        }
    }
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
pub fn needs_width(arena: &Arena, raw: &RawAccess) -> bool {
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

/// The unknowns, by index, that multiply the lane beside another dimension and may well be 1: steps such as that of a
/// strided convolution or the increment of a vector of a batch. Those that are sizes are not: sizes are compared with, divided by, and multiplied with
/// other sizes, and what lies between two rows is walked over.
pub fn lane_steps(arena: &Arena, raw: &RawAccess, kernel: &Executed) -> Vec<u32> {
    let steps = steps(arena, raw, kernel).into_iter().filter_map(|step| match arena.node(step) {
        Node::Symbol(Symbol::Unknown(index)) => Some(*index),
        _ => None,
    });
    steps.collect()
}

/// The unknowns, by index, that are the distance in bytes between the structs of neighbouring lanes
/// (`*(Block *)(base + i * stride)`), and the least that each can be: structs do not overlap.
pub fn struct_steps(arena: &Arena, raw: &RawAccess) -> Vec<(u32, i64)> {
    let Some(aggregate) = &raw.aggregate else { return Vec::new() };
    let Some(size) = aggregate.ty.size else { return Vec::new() };
    let (_, terms) = arena.terms(aggregate.element);
    let by_lane = |id: ExprId| affine::deps_beside_data(arena, id) & TID != 0;
    let steps = terms.into_iter().filter_map(|(coefficient, id)| {
        let Node::Product(factors) = arena.node(id) else { return None };
        let &[a, b] = &factors[..] else { return None };
        let (lane, step) = if by_lane(a) { (a, b) } else { (b, a) };
        let Node::Symbol(Symbol::Unknown(index)) = *arena.node(step) else { return None };
        let is_in_bytes = (1..size).contains(&coefficient) && size % coefficient == 0;
        // Rows of a size from outside are as long as they are: neighbours are in one of them.
        let is_row =
            matches!(arena.node(lane), Node::Binary { op: Op::Div, b, .. } if arena.deps(*b) & UNKNOWN != 0);
        (is_in_bytes && by_lane(lane) && !is_row).then_some((index, size / coefficient))
    });
    steps.collect()
}

/// [`lane_steps`] and those that the host reads somewhere.
fn steps(arena: &Arena, raw: &RawAccess, kernel: &Executed) -> Vec<ExprId> {
    let (_, terms) = arena.terms(raw.offset);
    let by_lane = |id: ExprId| affine::deps_beside_data(arena, id) & TID != 0;
    let is_element = |coefficient: i64| coefficient.abs() == raw.width;
    let is_open = |step: ExprId| match arena.node(step) {
        Node::Symbol(Symbol::Unknown(index)) => {
            arena.unknowns.get(*index as usize).is_some_and(|unknown| !unknown.is_pitch)
        }
        _ => is_read(arena, step),
    };
    // `for (j = max(i * step - pad, 0); …; j++) x[j]`: a window for each lane, and the lanes' windows are a step apart.
    let windows = terms.iter().filter(|&&(coefficient, id)| is_element(coefficient) && by_lane(id));
    let starts: Vec<ExprId> = windows.filter_map(|&(_, id)| affine::start_of(arena, id)).collect();
    let hidden: Vec<ExprId> = products(arena, starts)
        .into_iter()
        .filter_map(|(a, b)| match (by_lane(a), by_lane(b)) {
            (true, false) => Some(b),
            (false, true) => Some(a),
            _ => None,
        })
        .filter(|&step| is_open(step) && !is_size(arena, step, raw, kernel))
        .collect();
    if !hidden.is_empty() {
        return hidden;
    }
    // Contiguous along some axis, or rows that are walked over.
    if terms.iter().any(|&(coefficient, id)| {
        is_element(coefficient) && !matches!(arena.node(id), Node::Product(_)) && varies(arena, id)
    }) {
        return Vec::new();
    }
    let steps = terms.iter().filter_map(|&(coefficient, id)| {
        let Node::Product(factors) = arena.node(id) else { return None };
        let &[a, b] = &factors[..] else { return None };
        let (lane, step) = if by_lane(a) { (a, b) } else { (b, a) };
        (is_element(coefficient) && by_lane(lane) && is_open(step)).then_some(step)
    });
    // Alone, `x[i * n]` is strided on purpose; beside another dimension its step is that of a general layout.
    let has_other_dimension = |step: ExprId| {
        let contains =
            |id: ExprId| matches!(arena.node(id), Node::Product(factors) if factors.contains(&step));
        terms.iter().any(|&(_, id)| varies(arena, id) && !contains(id))
    };
    steps.filter(|&step| has_other_dimension(step) && !is_size(arena, step, raw, kernel)).collect()
}

/// The products of two factors within sums, minima and maxima.
fn products(arena: &Arena, mut stack: Vec<ExprId>) -> Vec<(ExprId, ExprId)> {
    let mut found = Vec::new();
    while let Some(id) = stack.pop() {
        match arena.node(id) {
            Node::Product(factors) => {
                if let [a, b] = factors[..] {
                    found.push((a, b));
                }
            }
            Node::Sum { .. } | Node::Wrap { .. } | Node::Binary { op: Op::Min | Op::Max, .. } => {
                stack.extend(arena.children(id));
            }
            _ => {}
        }
    }
    found
}

/// Does it change with the thread, the block or a loop?
fn varies(arena: &Arena, id: ExprId) -> bool {
    affine::deps_beside_data(arena, id) & !(UNKNOWN | DIM | DATA) != 0
}

/// Is it compared with, divided by, or one of several sizes that are multiplied, where the launch or an access of the kernel is
/// computed?
fn is_size(arena: &Arena, step: ExprId, raw: &RawAccess, kernel: &Executed) -> bool {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut stack = vec![raw.offset, raw.guard];
    stack.extend(kernel.block.iter().chain(&kernel.grid).flatten());
    stack.extend(&kernel.conditions);
    stack.extend(kernel.accesses.iter().flat_map(|other| [other.offset, other.guard]));
    for id in kernel.accesses.iter().flat_map(|other| &other.loops) {
        if let Some(of) = arena.loops.get(id.0 as usize) {
            stack.push(of.cond);
            stack.extend(of.vars.iter().flat_map(|var| [var.init, var.next]));
        }
    }
    let is_operand = |id: ExprId| {
        id == step
            || matches!(arena.node(id), Node::Sum { terms, .. } if terms.iter().any(|&(_, of)| of == step))
    };
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        match arena.node(id) {
            Node::Binary { a, b, .. } if is_operand(*a) || is_operand(*b) => return true,
            // The last of a row: `n - 1`.
            Node::Sum { constant, terms } if terms.contains(&(-constant, step)) => return true,
            Node::Product(factors) if factors.contains(&step) => {
                let is_other = |factor: ExprId| factor != step && arena.deps(factor) & UNKNOWN != 0;
                if factors.iter().any(|&factor| is_other(factor) && !varies(arena, factor)) {
                    return true;
                }
            }
            _ => {}
        }
        stack.extend(arena.children(id));
    }
    false
}
