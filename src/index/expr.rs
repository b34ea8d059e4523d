//! Canonical, hash-consed integer expressions.
//!
//! A sum is `constant + Σ coefficient·factor` with sorted, distinct, non-constant factors; products of sums are
//! distributed while they stay small. So `4*(i+1)` and `i*4+4` are one expression, and `Eq` is an id compare.
//! Arithmetic is 64-bit wrapping; conversions to narrower types are explicit [`Node::Wrap`]s.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::limits;
use crate::ir::ast::Name;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

    pub fn index(self) -> usize {
        self as usize
    }

    pub fn letter(self) -> char {
        ['x', 'y', 'z'][self as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    ThreadIdx(Axis),
    BlockIdx(Axis),
    BlockDim(Axis),
    GridDim(Axis),
    /// Fixed for a launch but not known: a parameter, an environment value. Index into [`Arena::unknowns`].
    Unknown(u32),
    /// A variable that changes over a loop; its place in [`Loop::vars`].
    LoopVar(LoopId, u32),
}

/// Something fixed whose value the source does not say.
#[derive(Clone, Debug)]
pub struct Unknown {
    pub name: String,
    /// The value a run without arguments has (`argc` is 1), used before any guess.
    pub preferred: Option<i64>,
    /// Used as a shift amount or an exponent: plausible values are small.
    pub small: bool,
    pub is_bool: bool,
    /// A template argument that no instantiation in the files gives.
    pub is_template: bool,
    /// A distance between rows: no step of 1.
    pub is_pitch: bool,
}

/// `{init, next}` for each variable while `cond` holds at the start of an iteration.
#[derive(Clone, Debug)]
pub struct Loop {
    pub vars: Vec<LoopVar>,
    pub cond: ExprId,
    /// The body runs once before the condition is tested.
    pub test_last: bool,
    /// What the values after the loop depend on.
    pub deps: Deps,
}

#[derive(Clone, Debug)]
pub struct LoopVar {
    pub name: Name,
    pub init: ExprId,
    pub next: ExprId,
    /// What the start and the steps depend on.
    pub deps: Deps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    Const(i64),
    Symbol(Symbol),
    Sum {
        constant: i64,
        terms: Box<[(i64, ExprId)]>,
    },
    Product(Box<[ExprId]>),
    /// `unsigned`: operands are taken modulo 2³² first (C's `unsigned`), where that changes the result.
    Binary {
        op: Op,
        unsigned: bool,
        a: ExprId,
        b: ExprId,
    },
    /// Logical negation: 1 where `a` is 0.
    Not(ExprId),
    Select {
        cond: ExprId,
        then: ExprId,
        otherwise: ExprId,
    },
    /// Conversion to an integer of `bytes` bytes.
    Wrap {
        bytes: u8,
        signed: bool,
        a: ExprId,
    },
    /// What memory holds at `address` of `base`: equal addresses give equal values.
    Load {
        base: u32,
        address: ExprId,
    },
    /// A value that is not understood but depends on nothing else than `inputs`.
    Opaque {
        id: u32,
        inputs: Box<[ExprId]>,
    },
    /// The value of a loop variable after its loop.
    Final {
        of: LoopId,
        var: u32,
    },
}

/// What a value may change with, as a bit set.
pub type Deps = u64;
pub const TID: Deps = 1;
pub const BID: Deps = 2;
pub const DIM: Deps = 4;
pub const UNKNOWN: Deps = 8;
pub const DATA: Deps = 16;
const LOOP_SHIFT: u32 = 8;
/// The bits of all loops.
pub const LOOPS: Deps = !0 << LOOP_SHIFT;

/// The bit of a loop. Loops 56 apart share one: evaluation then recomputes more than it must, never less.
pub fn loop_bit(id: LoopId) -> Deps {
    1 << (LOOP_SHIFT + id.0 % (64 - LOOP_SHIFT))
}

#[derive(Default)]
pub struct Arena {
    nodes: Vec<Node>,
    deps: Vec<Deps>,
    truths: Vec<bool>,
    depth: Vec<u16>,
    ids: FxHashMap<Node, ExprId>,
    pub unknowns: Vec<Unknown>,
    pub loops: Vec<Loop>,
    opaque: u32,
}

impl Arena {
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, id: ExprId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn deps(&self, id: ExprId) -> Deps {
        self.deps[id.0 as usize]
    }

    fn intern(&mut self, node: Node) -> ExprId {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let (deps, depth) = self.summary(&node);
        if depth > limits::EXPRESSION_DEPTH || self.nodes.len() > limits::ARENA_NODES {
            let fresh = Node::Opaque { id: u32::MAX, inputs: Box::default() };
            if node != fresh {
                return self.intern(fresh);
            }
        }
        let id = ExprId(self.nodes.len() as u32);
        let decides = self.decides(&node);
        self.truths.push(decides);
        self.nodes.push(node.clone());
        self.deps.push(deps);
        self.depth.push(depth);
        self.ids.insert(node, id);
        id
    }

    fn summary(&self, node: &Node) -> (Deps, u16) {
        let mut deps = 0;
        let mut depth = 0;
        let mut visit = |id: ExprId| {
            deps |= self.deps(id);
            depth = depth.max(self.depth[id.0 as usize] + 1);
        };
        match node {
            Node::Const(_) => {}
            Node::Symbol(symbol) => {
                return (
                    match symbol {
                        Symbol::ThreadIdx(_) => TID,
                        Symbol::BlockIdx(_) => BID,
                        Symbol::BlockDim(_) | Symbol::GridDim(_) => DIM,
                        Symbol::Unknown(_) => UNKNOWN,
                        Symbol::LoopVar(of, var) => {
                            let of_loop = self.loops.get(of.0 as usize);
                            loop_bit(*of)
                                | of_loop.and_then(|l| l.vars.get(*var as usize)).map_or(0, |v| v.deps)
                        }
                    },
                    0,
                );
            }
            Node::Sum { terms, .. } => terms.iter().for_each(|&(_, id)| visit(id)),
            Node::Product(factors) => factors.iter().copied().for_each(visit),
            Node::Binary { a, b, .. } => [*a, *b].into_iter().for_each(visit),
            Node::Not(a) | Node::Wrap { a, .. } => visit(*a),
            Node::Select { cond, then, otherwise } => {
                [*cond, *then, *otherwise].into_iter().for_each(visit);
            }
            Node::Load { address, .. } => {
                visit(*address);
                deps |= DATA;
            }
            Node::Opaque { inputs, .. } => {
                inputs.iter().copied().for_each(visit);
                deps |= DATA;
            }
            Node::Final { of, var } => {
                let of_loop = self.loops.get(of.0 as usize);
                let of_var = of_loop.and_then(|l| l.vars.get(*var as usize)).map_or(0, |v| v.deps);
                deps = (of_loop.map_or(0, |l| l.deps) | of_var) & !loop_bit(*of);
                depth = 1;
            }
        }
        (deps, depth)
    }

    pub fn constant(&mut self, value: i64) -> ExprId {
        self.intern(Node::Const(value))
    }

    pub fn as_const(&self, id: ExprId) -> Option<i64> {
        match self.node(id) {
            Node::Const(value) => Some(*value),
            _ => None,
        }
    }

    pub fn symbol(&mut self, symbol: Symbol) -> ExprId {
        self.intern(Node::Symbol(symbol))
    }

    /// A fixed value that the source does not say.
    pub fn unknown(&mut self, name: impl Into<String>, preferred: Option<i64>) -> ExprId {
        self.unknowns.push(Unknown {
            name: name.into(),
            preferred,
            small: false,
            is_bool: false,
            is_template: false,
            is_pitch: false,
        });
        self.symbol(Symbol::Unknown(self.unknowns.len() as u32 - 1))
    }

    pub fn opaque(&mut self, mut inputs: Vec<ExprId>) -> ExprId {
        self.opaque += 1;
        inputs.retain(|&id| self.as_const(id).is_none());
        inputs.sort();
        inputs.dedup();
        inputs.truncate(8);
        let id = self.opaque;
        self.intern(Node::Opaque { id, inputs: inputs.into() })
    }

    pub fn load(&mut self, base: u32, address: ExprId) -> ExprId {
        self.intern(Node::Load { base, address })
    }

    pub fn final_value(&mut self, of: LoopId, var: u32) -> ExprId {
        self.intern(Node::Final { of, var })
    }

    fn sum_parts(&self, id: ExprId) -> (i64, Vec<(i64, ExprId)>) {
        match self.node(id) {
            Node::Const(value) => (*value, Vec::new()),
            Node::Sum { constant, terms } => (*constant, terms.to_vec()),
            _ => (0, vec![(1, id)]),
        }
    }

    fn sum(&mut self, constant: i64, mut terms: Vec<(i64, ExprId)>) -> ExprId {
        terms.sort_by_key(|&(_, id)| id);
        let mut merged: Vec<(i64, ExprId)> = Vec::with_capacity(terms.len());
        for (coefficient, id) in terms {
            match merged.last_mut() {
                Some(last) if last.1 == id => last.0 = last.0.wrapping_add(coefficient),
                _ => merged.push((coefficient, id)),
            }
        }
        merged.retain(|&(coefficient, _)| coefficient != 0);
        match merged.as_slice() {
            [] => self.constant(constant),
            [(1, id)] if constant == 0 => *id,
            _ => self.intern(Node::Sum { constant, terms: merged.into() }),
        }
    }

    pub fn add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (ca, mut terms) = self.sum_parts(a);
        let (cb, more) = self.sum_parts(b);
        terms.extend(more);
        self.sum(ca.wrapping_add(cb), terms)
    }

    pub fn scale(&mut self, a: ExprId, by: i64) -> ExprId {
        let (constant, mut terms) = self.sum_parts(a);
        for term in &mut terms {
            term.0 = term.0.wrapping_mul(by);
        }
        self.sum(constant.wrapping_mul(by), terms)
    }

    pub fn sub(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let negated = self.scale(b, -1);
        self.add(a, negated)
    }

    pub fn mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if let Some(value) = self.as_const(a) {
            return self.scale(b, value);
        }
        if let Some(value) = self.as_const(b) {
            return self.scale(a, value);
        }
        let (ca, ta) = self.sum_parts(a);
        let (cb, tb) = self.sum_parts(b);
        if (ta.len() + 1) * (tb.len() + 1) > limits::DISTRIBUTED_TERMS {
            return self.product(vec![a, b]);
        }
        let mut terms = Vec::new();
        for &(x, fx) in &ta {
            for &(y, fy) in &tb {
                let product = self.product(vec![fx, fy]);
                terms.push((x.wrapping_mul(y), product));
            }
            terms.push((x.wrapping_mul(cb), fx));
        }
        for &(y, fy) in &tb {
            terms.push((y.wrapping_mul(ca), fy));
        }
        self.sum(ca.wrapping_mul(cb), terms)
    }

    fn product(&mut self, factors: Vec<ExprId>) -> ExprId {
        let mut flat = Vec::new();
        for id in factors {
            match self.node(id) {
                Node::Product(inner) => flat.extend_from_slice(inner),
                _ => flat.push(id),
            }
        }
        flat.sort();
        self.intern(Node::Product(flat.into()))
    }

    /// What `min(8, n)` can be at most.
    fn most(&self, id: ExprId) -> Option<i64> {
        match self.node(id) {
            Node::Binary { op: Op::Min, a, b, .. } => match (self.as_const(*a), self.as_const(*b)) {
                (Some(x), Some(y)) => Some(x.min(y)),
                (one, other) => one.or(other),
            },
            _ => None,
        }
    }

    pub fn binary(&mut self, op: Op, unsigned: bool, a: ExprId, b: ExprId) -> ExprId {
        if let (Some(x), Some(y)) = (self.as_const(a), self.as_const(b))
            && let Some(value) = apply(op, unsigned, x, y)
        {
            return self.constant(value);
        }
        let (ca, cb) = (self.as_const(a), self.as_const(b));
        match (op, ca, cb) {
            (Op::Div, _, Some(1)) | (Op::Shl | Op::Shr, _, Some(0)) | (Op::Or | Op::Xor, _, Some(0)) => {
                return a;
            }
            (Op::Or | Op::Xor, Some(0), _) => return b,
            (Op::Rem, _, Some(1)) | (Op::And, _, Some(0)) | (Op::And, Some(0), _) => return self.constant(0),
            (Op::Div | Op::Rem | Op::Shl | Op::Shr, Some(0), _) => return self.constant(0),
            (Op::And, _, Some(-1)) => return a,
            (Op::Shl, _, Some(by @ 0..=62)) => return self.scale(a, 1 << by),
            (Op::Eq | Op::Le, ..) if a == b => return self.constant(1),
            (Op::Eq, _, Some(y)) if self.most(a).is_some_and(|most| most < y) => return self.constant(0),
            (Op::Eq, Some(x), _) if self.most(b).is_some_and(|most| most < x) => return self.constant(0),
            (Op::Ne | Op::Lt, ..) if a == b => return self.constant(0),
            (Op::Min | Op::Max, ..) if a == b => return a,
            _ => {}
        }
        if matches!(op, Op::Shl | Op::Shr)
            && let Node::Symbol(Symbol::Unknown(index)) = *self.node(b)
        {
            self.unknowns[index as usize].small = true;
        }
        self.intern(Node::Binary { op, unsigned, a, b })
    }

    pub fn not(&mut self, a: ExprId) -> ExprId {
        match *self.node(a) {
            Node::Const(value) => self.constant(i64::from(value == 0)),
            Node::Binary { op: Op::Lt, unsigned, a, b } => self.binary(Op::Le, unsigned, b, a),
            Node::Binary { op: Op::Le, unsigned, a, b } => self.binary(Op::Lt, unsigned, b, a),
            Node::Binary { op: Op::Eq, unsigned, a, b } => self.binary(Op::Ne, unsigned, a, b),
            Node::Binary { op: Op::Ne, unsigned, a, b } => self.binary(Op::Eq, unsigned, a, b),
            Node::Not(inner) if self.is_truth(inner) => inner,
            _ => self.intern(Node::Not(a)),
        }
    }

    /// Is the value 0 or 1 by construction?
    pub fn is_truth(&self, id: ExprId) -> bool {
        self.truths[id.0 as usize]
    }

    /// What [`Arena::is_truth`] says, from the parts: expressions share theirs, so that a walk could take forever.
    fn decides(&self, node: &Node) -> bool {
        match node {
            Node::Const(value) => matches!(value, 0 | 1),
            Node::Not(_) => true,
            Node::Binary { op: Op::Eq | Op::Ne | Op::Lt | Op::Le, .. } => true,
            Node::Binary { op: Op::And | Op::Or, a, b, .. } => self.is_truth(*a) && self.is_truth(*b),
            Node::Select { then, otherwise, .. } => self.is_truth(*then) && self.is_truth(*otherwise),
            _ => false,
        }
    }

    /// `id != 0` as 0 or 1.
    pub fn truth(&mut self, id: ExprId) -> ExprId {
        if self.is_truth(id) {
            return id;
        }
        let zero = self.constant(0);
        self.binary(Op::Ne, false, id, zero)
    }

    /// Logical and of two truth values.
    pub fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.as_const(a), self.as_const(b)) {
            (Some(0), _) | (_, Some(0)) => self.constant(0),
            (Some(_), _) => b,
            (_, Some(_)) => a,
            _ if a == b => a,
            _ => self.intern(Node::Binary { op: Op::And, unsigned: false, a, b }),
        }
    }

    /// Logical or of two truth values.
    pub fn or(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.as_const(a), self.as_const(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(_), _) | (_, Some(_)) => self.constant(1),
            _ if a == b => a,
            _ => self.intern(Node::Binary { op: Op::Or, unsigned: false, a, b }),
        }
    }

    pub fn select(&mut self, cond: ExprId, then: ExprId, otherwise: ExprId) -> ExprId {
        match self.as_const(cond) {
            Some(0) => otherwise,
            Some(_) => then,
            None if then == otherwise => then,
            None => match (self.as_const(then), self.as_const(otherwise)) {
                (Some(1), Some(0)) => self.truth(cond),
                (Some(0), Some(1)) => self.not(cond),
                _ => self.intern(Node::Select { cond, then, otherwise }),
            },
        }
    }

    pub fn wrap(&mut self, bytes: u8, signed: bool, a: ExprId) -> ExprId {
        if bytes >= 8 {
            return a;
        }
        if let Some(value) = self.as_const(a) {
            return self.constant(wrap(bytes, signed, value));
        }
        self.intern(Node::Wrap { bytes, signed, a })
    }

    /// The conjuncts of a guard, outermost first.
    pub fn conjuncts(&self, guard: ExprId) -> Vec<ExprId> {
        let mut out = Vec::new();
        let mut stack = vec![guard];
        while let Some(id) = stack.pop() {
            match self.node(id) {
                Node::Const(value) if *value != 0 => {}
                Node::Binary { op: Op::And, a, b, .. } if self.is_truth(*a) && self.is_truth(*b) => {
                    stack.push(*b);
                    stack.push(*a);
                }
                _ => out.push(id),
            }
        }
        out
    }

    pub fn display(&self, id: ExprId) -> Shown<'_> {
        Shown { arena: self, id }
    }

    /// An expression as a constant and terms `(coefficient, factor)`; what is no sum is one term.
    pub fn terms(&self, id: ExprId) -> (i64, Vec<(i64, ExprId)>) {
        match self.node(id) {
            Node::Const(value) => (*value, Vec::new()),
            Node::Sum { constant, terms } => (*constant, terms.to_vec()),
            _ => (0, vec![(1, id)]),
        }
    }

    /// The variables of a loop that an expression is made of.
    pub fn loop_vars_in(&self, id: ExprId, of: LoopId) -> Vec<u32> {
        let mut seen = FxHashSet::default();
        let mut out = Vec::new();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if self.deps(id) & loop_bit(of) == 0 || !seen.insert(id) {
                continue;
            }
            match self.node(id) {
                Node::Symbol(Symbol::LoopVar(owner, var)) if *owner == of => out.push(*var),
                // What an inner loop leaves behind may come from any variable of this one.
                Node::Final { of: inner, .. } => {
                    if let Some(inner) = self.loops.get(inner.0 as usize) {
                        stack.push(inner.cond);
                        stack.extend(inner.vars.iter().flat_map(|var| [var.init, var.next]));
                    }
                }
                Node::Symbol(Symbol::LoopVar(inner, _)) => {
                    if let Some(inner) = self.loops.get(inner.0 as usize) {
                        stack.extend(inner.vars.iter().flat_map(|var| [var.init, var.next]));
                    }
                }
                _ => stack.extend(self.children(id)),
            }
        }
        out.sort_unstable();
        out
    }

    /// Children of a node, for walks.
    pub fn children(&self, id: ExprId) -> Vec<ExprId> {
        match self.node(id) {
            Node::Const(_) | Node::Symbol(_) | Node::Final { .. } => Vec::new(),
            Node::Sum { terms, .. } => terms.iter().map(|&(_, id)| id).collect(),
            Node::Product(factors) => factors.to_vec(),
            Node::Binary { a, b, .. } => vec![*a, *b],
            Node::Not(a) | Node::Wrap { a, .. } => vec![*a],
            Node::Select { cond, then, otherwise } => vec![*cond, *then, *otherwise],
            Node::Load { address, .. } => vec![*address],
            Node::Opaque { inputs, .. } => inputs.to_vec(),
        }
    }
}

/// The value of a narrowing conversion.
pub fn wrap(bytes: u8, signed: bool, value: i64) -> i64 {
    match (bytes, signed) {
        (1, true) => value as i8 as i64,
        (1, false) => value as u8 as i64,
        (2, true) => value as i16 as i64,
        (2, false) => value as u16 as i64,
        (4, true) => value as i32 as i64,
        (4, false) => value as u32 as i64,
        _ => value,
    }
}

/// C's result, or `None` where it has none (division by zero, a shift by 64 or more).
pub fn apply(op: Op, unsigned: bool, x: i64, y: i64) -> Option<i64> {
    let (x, y) =
        if unsigned && matches!(op, Op::Div | Op::Rem | Op::Shr | Op::Lt | Op::Le | Op::Min | Op::Max) {
            (i64::from(x as u32), i64::from(y as u32))
        } else {
            (x, y)
        };
    Some(match op {
        Op::Div => x.checked_div(y)?,
        Op::Rem => x.checked_rem(y)?,
        Op::Shl => x.checked_shl(u32::try_from(y).ok().filter(|&y| y < 64)?)?,
        Op::Shr => x.checked_shr(u32::try_from(y).ok().filter(|&y| y < 64)?)?,
        Op::And => x & y,
        Op::Or => x | y,
        Op::Xor => x ^ y,
        Op::Min => x.min(y),
        Op::Max => x.max(y),
        Op::Eq => i64::from(x == y),
        Op::Ne => i64::from(x != y),
        Op::Lt => i64::from(x < y),
        Op::Le => i64::from(x <= y),
    })
}

/// Mathematical notation: `16·tid.x + 4·n`.
pub struct Shown<'a> {
    arena: &'a Arena,
    id: ExprId,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.arena, self.id, f, 0)
    }
}

fn show(arena: &Arena, id: ExprId, f: &mut fmt::Formatter<'_>, depth: u32) -> fmt::Result {
    if depth > 6 {
        return f.write_str("…");
    }
    match arena.node(id) {
        Node::Const(value) => write!(f, "{value}"),
        Node::Symbol(symbol) => f.write_str(&symbol_name(arena, *symbol)),
        Node::Sum { constant, terms } => show_sum(arena, *constant, terms, f, depth),
        Node::Product(factors) => {
            for (place, factor) in factors.iter().enumerate() {
                if place > 0 {
                    f.write_str("·")?;
                }
                atom(arena, *factor, f, depth)?;
            }
            Ok(())
        }
        Node::Binary { op: Op::Min, a, b, .. } => call(arena, "min", &[*a, *b], f, depth),
        Node::Binary { op: Op::Max, a, b, .. } => call(arena, "max", &[*a, *b], f, depth),
        Node::Binary { op, a, b, .. } => {
            atom(arena, *a, f, depth)?;
            write!(f, " {} ", op_text(*op))?;
            atom(arena, *b, f, depth)
        }
        Node::Not(a) => {
            f.write_str("!")?;
            atom(arena, *a, f, depth)
        }
        Node::Select { cond, then, otherwise } => {
            atom(arena, *cond, f, depth)?;
            f.write_str(" ? ")?;
            atom(arena, *then, f, depth)?;
            f.write_str(" : ")?;
            atom(arena, *otherwise, f, depth)
        }
        Node::Wrap { bytes, signed, a } => {
            let name = format!("{}{}", if *signed { "i" } else { "u" }, u32::from(*bytes) * 8);
            call(arena, &name, &[*a], f, depth)
        }
        Node::Load { address, .. } => call(arena, "load", &[*address], f, depth),
        Node::Opaque { .. } => f.write_str("?"),
        Node::Final { of, var } => {
            let name = arena.loops.get(of.0 as usize).and_then(|l| l.vars.get(*var as usize));
            write!(f, "final({})", name.map_or("i", |v| v.name.as_str()))
        }
    }
}

fn op_text(op: Op) -> &'static str {
    match op {
        Op::Div => "/",
        Op::Rem => "%",
        Op::Shl => "<<",
        Op::Shr => ">>",
        Op::And => "&",
        Op::Or => "|",
        Op::Xor => "^",
        Op::Eq => "==",
        Op::Ne => "!=",
        Op::Lt => "<",
        Op::Le => "<=",
        Op::Min => "min",
        Op::Max => "max",
    }
}

/// The name of a symbol as reports print it.
pub fn symbol_name(arena: &Arena, symbol: Symbol) -> String {
    match symbol {
        Symbol::ThreadIdx(axis) => format!("tid.{}", axis.letter()),
        Symbol::BlockIdx(axis) => format!("bid.{}", axis.letter()),
        Symbol::BlockDim(axis) => format!("blockDim.{}", axis.letter()),
        Symbol::GridDim(axis) => format!("gridDim.{}", axis.letter()),
        Symbol::Unknown(index) => {
            arena.unknowns.get(index as usize).map_or_else(|| "?".to_owned(), |unknown| unknown.name.clone())
        }
        Symbol::LoopVar(of, var) => {
            let name = arena.loops.get(of.0 as usize).and_then(|l| l.vars.get(var as usize));
            name.map_or_else(|| "i".to_owned(), |v| v.name.to_string())
        }
    }
}

/// Lane terms first, then block terms, then the rest: readers look for `threadIdx`.
fn show_sum(
    arena: &Arena,
    constant: i64,
    terms: &[(i64, ExprId)],
    f: &mut fmt::Formatter<'_>,
    depth: u32,
) -> fmt::Result {
    let mut terms = terms.to_vec();
    terms.sort_by_key(|&(_, id)| match arena.deps(id) {
        deps if deps & TID != 0 => 0,
        deps if deps & BID != 0 => 1,
        _ => 2,
    });
    // What is not seen has no size to multiply: one `?` stands for all of it.
    let is_unseen = |id: &ExprId| match arena.node(*id) {
        Node::Opaque { .. } => true,
        Node::Product(factors) => {
            arena.deps(*id) & (TID | BID) == 0
                && factors.iter().any(|&factor| matches!(arena.node(factor), Node::Opaque { .. }))
        }
        _ => false,
    };
    let (unseen, terms): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, id)| is_unseen(id));
    for (place, (coefficient, factor)) in terms.iter().enumerate() {
        match (place, *coefficient < 0) {
            (0, true) => f.write_str("-")?,
            (0, false) => {}
            (_, true) => f.write_str(" - ")?,
            (_, false) => f.write_str(" + ")?,
        }
        if coefficient.unsigned_abs() != 1 {
            write!(f, "{}·", coefficient.unsigned_abs())?;
        }
        if matches!(arena.node(*factor), Node::Product(_)) {
            show(arena, *factor, f, depth + 1)?;
        } else {
            atom(arena, *factor, f, depth)?;
        }
    }
    if !unseen.is_empty() {
        f.write_str(if terms.is_empty() { "?" } else { " + ?" })?;
    }
    match constant {
        0 => Ok(()),
        c if c < 0 => write!(f, " - {}", c.unsigned_abs()),
        c => write!(f, " + {c}"),
    }
}

fn atom(arena: &Arena, id: ExprId, f: &mut fmt::Formatter<'_>, depth: u32) -> fmt::Result {
    let bare = matches!(
        arena.node(id),
        Node::Const(_) | Node::Symbol(_) | Node::Load { .. } | Node::Opaque { .. } | Node::Final { .. }
    );
    if bare {
        return show(arena, id, f, depth + 1);
    }
    f.write_str("(")?;
    show(arena, id, f, depth + 1)?;
    f.write_str(")")
}

fn call(arena: &Arena, name: &str, args: &[ExprId], f: &mut fmt::Formatter<'_>, depth: u32) -> fmt::Result {
    write!(f, "{name}(")?;
    for (place, arg) in args.iter().enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        show(arena, *arg, f, depth + 1)?;
    }
    f.write_str(")")
}
