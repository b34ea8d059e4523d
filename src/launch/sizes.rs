//! What the host asked before it launched: `if (k <= 1) kernel<1><<<…>>>(…, k)` is no launch with a large `k`.
//!
//! Sizes that nobody gives are tried with plausible values ([`plausible`]). Those that the conditions around a launch rule
//! out are not tried for it; where none is left, small numbers are.
//!
//! [`plausible`]: crate::index::eval::plausible

use rustc_hash::{FxHashMap, FxHashSet};

use crate::index::affine;
use crate::index::eval::{Evaluator, VALUATIONS};
use crate::index::expr::{Arena, ExprId, Node, Op, Symbol, UNKNOWN};

/// Values for sizes of which the plausible ones are ruled out.
const SMALL: [i64; 12] = [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Lanes that a test of a lane against a size lets through, when it is tried with a small one.
const FEW_LANES: i64 = 8;

/// The values that are tried for the unknowns of one launch.
#[derive(Clone)]
pub struct Sizes {
    pub tried: Vec<Tried>,
    /// Unknowns, by index, that the conditions fix.
    pub bound: FxHashMap<u32, i64>,
    /// Those conditions of the launch that only such unknowns decide.
    conditions: Vec<ExprId>,
}

/// A value for every unknown.
#[derive(Clone)]
pub struct Tried {
    /// The number of a set of plausible values.
    pub valuation: usize,
    /// Unknowns, by index, that get another number, for the plausible ones are ruled out.
    pub guessed: FxHashMap<u32, i64>,
    /// The guesses are the least values that there can be.
    pub is_least: bool,
}

impl Sizes {
    /// Values under which all conditions of a launch hold.
    pub fn fitting(eval: &mut Evaluator, conditions: &[ExprId]) -> Sizes {
        let arena = eval.arena;
        let conditions: Vec<ExprId> =
            conditions.iter().copied().filter(|&id| arena.deps(id) == UNKNOWN).collect();
        let bound: FxHashMap<u32, i64> = conditions.iter().filter_map(|&id| equality(arena, id)).collect();
        let mut sizes = Sizes { tried: Vec::new(), bound, conditions };
        sizes.tried = plausible_sets().filter(|tried| sizes.hold(eval, tried)).collect();
        if sizes.tried.is_empty() {
            let open: Vec<u32> = affine::unknowns(arena, &sizes.conditions)
                .into_iter()
                .filter(|index| !sizes.bound.contains_key(index))
                .collect();
            let mut fitting: Vec<Tried> = SMALL
                .iter()
                .map(|&value| Tried {
                    valuation: 0,
                    guessed: open.iter().map(|&index| (index, value)).collect(),
                    is_least: false,
                })
                .filter(|tried| sizes.hold(eval, tried))
                .collect();
            // The least, the largest and one between them.
            if fitting.len() > VALUATIONS {
                let last = fitting.len() - 1;
                fitting.swap(1, last / 2);
                fitting.swap(2, last);
                fitting.truncate(VALUATIONS);
            }
            sizes.tried = fitting;
        }
        if sizes.tried.is_empty() {
            // Conditions that nothing simple meets are not followed.
            sizes.tried = plausible_sets().collect();
        }
        sizes
    }

    /// `if (lane < k)` in the kernel, with a lane of the warp or a thread of the block: `k` may be small, too. It is tried as [`FEW_LANES`].
    pub fn allow_few_lanes(&mut self, eval: &mut Evaluator, guards: impl Iterator<Item = ExprId>) {
        let arena = eval.arena;
        let mut few: Vec<u32> = Vec::new();
        let mut seen: FxHashSet<ExprId> = FxHashSet::default();
        for conjunct in guards.flat_map(|guard| arena.conjuncts(guard)) {
            let Node::Binary { op: Op::Lt, a, b, .. } = arena.node(conjunct) else { continue };
            let Node::Symbol(Symbol::Unknown(index)) = arena.node(*b) else { continue };
            let is_free = !self.bound.contains_key(index)
                && arena.unknowns.get(*index as usize).is_some_and(|unknown| unknown.preferred.is_none());
            if is_free && seen.insert(conjunct) && affine::is_of_block(arena, *a) && !few.contains(index) {
                few.push(*index);
            }
        }
        if !few.is_empty() && self.tried.iter().all(|tried| tried.guessed.is_empty()) {
            let guessed = few.into_iter().map(|index| (index, FEW_LANES)).collect();
            self.tried.push(Tried { valuation: 0, guessed, is_least: false });
        }
    }

    /// These and a case in which unknowns have the values of `least`, if the conditions of the launch allow that.
    pub fn with_least(&self, eval: &mut Evaluator, least: &[(u32, i64)]) -> Option<Sizes> {
        let free: Vec<(u32, i64)> =
            least.iter().copied().filter(|(index, _)| !self.bound.contains_key(index)).collect();
        let first = self.tried.first().filter(|_| !free.is_empty())?;
        let mut guessed = first.guessed.clone();
        guessed.extend(free);
        let tried = Tried { valuation: first.valuation, guessed, is_least: true };
        if !self.hold(eval, &tried) {
            return None;
        }
        let mut all = self.clone();
        all.tried.push(tried);
        Some(all)
    }

    /// Makes the evaluator compute with these values.
    pub fn apply(&self, eval: &mut Evaluator, tried: &Tried) {
        eval.set_valuation(tried.valuation);
        eval.set_bound(
            self.bound.iter().chain(&tried.guessed).map(|(&index, &value)| (index, value)).collect(),
        );
    }

    fn hold(&self, eval: &mut Evaluator, tried: &Tried) -> bool {
        self.apply(eval, tried);
        self.conditions.iter().all(|&id| eval.uniform(id) != 0)
    }
}

impl Tried {
    /// Multiples of 32 and no guesses.
    pub fn is_favourable_multiple(&self) -> bool {
        self.valuation == 0 && self.guessed.is_empty()
    }
}

fn plausible_sets() -> impl Iterator<Item = Tried> {
    (0..VALUATIONS).map(|valuation| Tried { valuation, guessed: FxHashMap::default(), is_least: false })
}

/// `n == 8`
fn equality(arena: &Arena, id: ExprId) -> Option<(u32, i64)> {
    let Node::Binary { op: Op::Eq, a, b, .. } = arena.node(id) else { return None };
    match (arena.node(*a), arena.node(*b)) {
        (Node::Symbol(Symbol::Unknown(index)), Node::Const(value))
        | (Node::Const(value), Node::Symbol(Symbol::Unknown(index))) => Some((*index, *value)),
        _ => None,
    }
}
