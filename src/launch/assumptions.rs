//! What a number rests on, in words.

use super::access::Measured;
use crate::index::affine;
use crate::index::expr::{DATA, ExprId, Node, Symbol, TID};
use crate::ir::facts::{LaunchShape, MemorySpace, ShapeSource};
use crate::lower::builtin::PITCH;
use crate::memory::device::SECTOR_BYTES;

/// An assumption about more sizes than this and one names the first.
const NAMES_LISTED: usize = 4;

/// Characters of a condition up to which an assumption spells it.
const LONGEST_CONDITION: usize = 60;

impl Measured<'_> {
    /// What the number rests on.
    pub fn assumptions(&self) -> Vec<String> {
        let (arena, raw, tally) = (self.arena, self.raw, &self.best.tally);
        let mut out = Vec::new();
        let mut assume = |is_assumed: bool, text: &str| out.extend(is_assumed.then(|| text.to_owned()));
        assume(raw.element == "?", "an element whose type is not seen is 4 bytes wide");
        assume(tally.lane_data_decides, "a branch on data is taken by all lanes");
        assume(tally.shared_data_guard, "tests against values in memory hold for all lanes");
        if let Some(condition) = tally.assumed_guard {
            let text = arena.display(condition).to_string();
            let is_readable = text.chars().count() <= LONGEST_CONDITION && !text.contains(['?', '…']);
            assume(
                true,
                &if is_readable {
                    format!("`{text}`")
                } else {
                    "conditions on unknown sizes hold".to_owned()
                },
            );
        }
        // Where lanes are in sectors of their own, it is no matter at which place of a sector.
        assume(
            affine::own_deps(arena, raw.offset) & DATA != 0 && !self.lanes_are_apart(),
            "what is loaded or not seen of the address, the same for a warp, is a multiple of 32 elements",
        );
        out.extend(self.preference());
        out.extend(self.values());
        out.extend(self.block());
        out
    }

    /// The command line that a program is run with, the pitch of an allocation.
    fn preference(&self) -> Option<String> {
        let mut roots = vec![self.raw.offset, self.raw.guard];
        for id in &self.raw.loops {
            if let Some(of) = self.arena.loops.get(id.0 as usize) {
                roots.push(of.cond);
                roots.extend(of.vars.iter().map(|var| var.init));
            }
        }
        roots.extend(self.kernel.block.iter().chain(self.kernel.grid.iter()).flatten());
        let mut preferred = affine::unknowns(self.arena, &roots)
            .into_iter()
            .filter_map(|index| self.arena.unknowns.get(index as usize))
            .filter(|unknown| unknown.preferred.is_some())
            .peekable();
        preferred.peek()?;
        // The only values that are preferred are those of the command line and the pitch of an allocation.
        Some(if preferred.all(|unknown| unknown.name == PITCH) {
            "rows of a pitched allocation start at multiples of 512 bytes".to_owned()
        } else {
            "the program runs without arguments".to_owned()
        })
    }

    /// What sizes that are not known were taken to be, as far as the number depends on it.
    fn values(&self) -> Vec<String> {
        let (arena, raw) = (self.arena, self.raw);
        let Some(tried) = self.tried() else { return Vec::new() };
        let mut out = Vec::new();
        let mut least: Vec<(i64, Vec<String>)> = Vec::new();
        for index in affine::unknowns(arena, &[raw.offset, raw.guard]) {
            let (Some(&value), Some(unknown)) =
                (tried.guessed.get(&index), arena.unknowns.get(index as usize))
            else {
                continue;
            };
            let name = format!("`{}`", unknown.name);
            match least.iter_mut().find(|(of, _)| *of == value) {
                _ if !tried.is_least || value == 1 => out.push(format!("{name} is {value}")),
                Some((_, names)) => names.push(name),
                None => least.push((value, vec![name])),
            }
        }
        out.extend(least.into_iter().map(|(value, names)| {
            format!("{} {} at least {value}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
        }));
        let agree = self.values_agree();
        if agree && affine::is_shaped(arena, raw.offset) {
            return out;
        }
        let apart = self.lanes_are_apart();
        if let Some(step) = self.step_of_lanes().filter(|_| apart) {
            out.push(step);
            return out;
        }
        let mut names = self.open_sizes();
        if names.is_empty() && !agree {
            out.push("sizes that are not known are favourable".to_owned());
        }
        let (deciding, flags) = self.deciding(apart);
        names.retain(|name| deciding.contains(name));
        let of_flags: Vec<String> = names.extract_if(.., |name| flags.contains(name)).collect();
        out.extend(
            of_flags.iter().map(|flag| format!("{flag} is none of the values that it is compared with")),
        );
        if names.is_empty() {
            return out;
        }
        let list = match names.get(NAMES_LISTED..) {
            Some([_, _, ..]) => {
                let listed = names.get(..NAMES_LISTED).unwrap_or_default().join(", ");
                format!("{listed} and {} others", names.len() - NAMES_LISTED)
            }
            _ => names.join(", "),
        };
        let is = if names.len() == 1 { "is" } else { "are" };
        out.push(match (agree, tried.valuation) {
            (true, _) => format!("{list} {is} large"),
            (false, 0) => format!("{list} {is} a multiple of 32"),
            (false, 1) => format!("{list} {is} odd"),
            (false, _) => format!("{list} {is} a multiple of 8, not of 32"),
        });
        out
    }

    /// Does every lane touch a sector of its own? Then it makes no difference where in a sector it does.
    fn lanes_are_apart(&self) -> bool {
        let tally = &self.best.tally;
        self.raw.space == MemorySpace::Global && tally.units == tally.active
    }

    /// From which step on neighbouring lanes are in sectors of their own: `n` is at least 8.
    fn step_of_lanes(&self) -> Option<String> {
        let arena = self.arena;
        let (_, terms) = arena.terms(self.raw.offset);
        let mut lanes = terms.into_iter().filter(|(_, id)| affine::own_deps(arena, *id) & TID != 0);
        let (coefficient, id) = lanes.next()?;
        let Node::Product(factors) = arena.node(id) else { return None };
        let &[a, b] = &factors[..] else { return None };
        let unknown = |id: ExprId| match arena.node(id) {
            Node::Symbol(Symbol::Unknown(index)) => arena.unknowns.get(*index as usize),
            _ => None,
        };
        let is_thread = |id: ExprId| matches!(arena.node(id), Node::Symbol(Symbol::ThreadIdx(_)));
        // `for (j = threadIdx.x; …; j += blockDim.x)` is such a distance, too.
        let is_axis = |id: ExprId| is_thread(id) || affine::start_of(arena, id).is_some_and(is_thread);
        let name = match (unknown(a), unknown(b)) {
            (Some(unknown), None) if is_axis(b) => &unknown.name,
            (None, Some(unknown)) if is_axis(a) => &unknown.name,
            _ => return None,
        };
        if lanes.next().is_some() {
            return None;
        }
        let least = i64::from(SECTOR_BYTES).div_euclid(coefficient.abs().max(1)).max(2);
        Some(format!("`{name}` is at least {least}"))
    }

    /// The sizes, by name, that are more than a shift of all lanes by whole sectors; `apart`: than any shift. And those of
    /// them that are only compared for equality.
    fn deciding(&self, apart: bool) -> (Vec<String>, Vec<String>) {
        let arena = self.arena;
        let (_, terms) = arena.terms(self.raw.offset);
        let sector = i64::from(SECTOR_BYTES);
        let decides = |&(coefficient, id): &(i64, ExprId)| {
            affine::own_deps(arena, id) & TID != 0 || (!apart && coefficient % sector != 0)
        };
        let roots: Vec<ExprId> = terms.into_iter().filter(decides).map(|(_, id)| id).collect();
        let (all, sizes) = (affine::unknowns(arena, &roots), affine::sizes(arena, &roots));
        let name =
            |index: &u32| arena.unknowns.get(*index as usize).map(|unknown| format!("`{}`", unknown.name));
        let flags = all.iter().filter(|index| !sizes.contains(index)).filter_map(name).collect();
        (all.iter().filter_map(name).collect(), flags)
    }

    /// The block, where no launch gives one.
    fn block(&self) -> Option<String> {
        let shape = self.shapes.get(self.best.shape)?;
        if shape.source != ShapeSource::Hypothesis || self.arena.deps(self.raw.offset) & TID == 0 {
            return None;
        }
        let names: Vec<String> = self.shapes.iter().map(LaunchShape::to_string).collect();
        let text = if names.len() == 1 {
            format!("a block of {shape} threads")
        } else if self.of_values().all(|case| case.is_like(self.best)) {
            format!("the same for blocks of {}", names.join(", "))
        } else {
            format!("a block of {shape} threads, the best of {}", names.join(", "))
        };
        let why = match self.kernel.launch_span {
            Some(_) => "the launch leaves the block open",
            None => "no launch is seen",
        };
        Some(format!("{why}: {text}"))
    }
}
