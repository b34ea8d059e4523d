//! What would take the conflicts of an array away, simulated over every access to it.

use std::collections::{BTreeMap, BTreeSet};

use cudalint::ir::facts::{AccessFact, BaseFact, KernelFact, MemorySpace, Operation, RequestFact};
use cudalint::lint::rule::Context;
use cudalint::memory::layout::{self, AccessUse, ArrayUse, IndexRequest, Layout};
use cudalint::memory::{Lanes, Tally};
use cudalint::source::Span;

/// The answer for one array.
#[derive(Clone)]
pub enum Remedy {
    /// Another layout is better in total and worse for no access.
    Layout(Better),
    /// All layouts tried leave the conflicts or move them.
    NothingHelps,
    /// No layout was simulated, and why.
    NotSimulated(&'static str),
}

impl Remedy {
    /// The remedy for one access: a layout counts only if it takes away most of this access's conflicts.
    pub fn for_access(self, access: &AccessFact, request: &RequestFact) -> Remedy {
        let Remedy::Layout(better) = &self else { return self };
        let after = better.after.get(&(access.span, access.operation)).and_then(Tally::mean_units);
        let halfway = (request.units + request.ideal) / 2.0;
        if after.is_some_and(|after| after <= halfway) { self } else { Remedy::NothingHelps }
    }
}

/// A layout that helps.
#[derive(Clone)]
pub struct Better {
    pub layout: Layout,
    /// The extents it was simulated for: those of the declaration, or rows seen in a flat array.
    pub extents: Vec<u64>,
    /// The rows are not in the declaration.
    pub is_flat: bool,
    /// What each access of the source then takes.
    pub after: BTreeMap<(Span, Operation), Tally>,
    /// Wavefronts over all simulated requests of the array.
    pub total_before: u64,
    pub total_after: u64,
    pub extra_bytes: u64,
}

/// Accesses to one array of one shape.
struct Uses<'a> {
    array: ArrayUse,
    facts: Vec<&'a AccessFact>,
    uses: Vec<AccessUse>,
}

/// The arrays of a project with the accesses to them, and the layouts found so far.
#[derive(Default)]
pub struct Remedies<'a> {
    accesses: BTreeMap<ArrayKey, Vec<(&'a BaseFact, &'a AccessFact)>>,
    /// Arrays of kernels whose block is only guessed, from several.
    guessed: BTreeSet<ArrayKey>,
    /// Arrays that inline PTX may access, too.
    unseen: BTreeSet<ArrayKey>,
    found: BTreeMap<(ArrayKey, Vec<u64>), Remedy>,
}

/// A declaration; without one, a name in a kernel.
type ArrayKey = (Span, String);

fn key(kernel: &KernelFact, base: &BaseFact) -> ArrayKey {
    (base.declaration.unwrap_or(kernel.span), base.name.clone())
}

impl<'a> Remedies<'a> {
    pub fn new(cx: &Context<'a>) -> Remedies<'a> {
        let mut remedies = Remedies::default();
        for kernel in cx.kernels {
            for fact in kernel.accesses.iter().filter(|fact| fact.space == MemorySpace::Shared) {
                if let Some(base) = kernel.bases.get(fact.base) {
                    if kernel.has_unseen_shared {
                        remedies.unseen.insert(key(kernel, base));
                    }
                    if !kernel.tried.is_empty() {
                        remedies.guessed.insert(key(kernel, base));
                    }
                    remedies.accesses.entry(key(kernel, base)).or_default().push((base, fact));
                }
            }
        }
        remedies
    }

    /// Every access to the array, in all launches of all kernels.
    pub fn accesses_to(&self, kernel: &KernelFact, base: &BaseFact) -> &[(&'a BaseFact, &'a AccessFact)] {
        self.accesses.get(&key(kernel, base)).map_or(&[], Vec::as_slice)
    }

    /// The best layout of an array, over every launch of every kernel that uses it.
    pub fn of(&mut self, kernel: &KernelFact, base: &BaseFact) -> Remedy {
        let key = (key(kernel, base), base.extents.clone());
        if self.guessed.contains(&key.0) {
            return Remedy::NotSimulated("no launch says how large a block is");
        }
        if self.unseen.contains(&key.0) {
            return Remedy::NotSimulated("inline PTX accesses shared memory at addresses that are not known");
        }
        if let Some(known) = self.found.get(&key) {
            return known.clone();
        }
        let remedy = find(self.accesses_to(kernel, base), base);
        self.found.insert(key, remedy.clone());
        remedy
    }
}

fn find(accesses: &[(&BaseFact, &AccessFact)], base: &BaseFact) -> Remedy {
    let unsized_elements = Remedy::NotSimulated("the size of its elements is not known");
    let Some(array_here) = array(base) else { return unsized_elements };
    let mut groups: Vec<Uses> = Vec::new();
    for (other, fact) in accesses {
        let Some(array) = array(other) else { return unsized_elements };
        let Some(request) = &fact.request else {
            return Remedy::NotSimulated("some accesses to it are not known");
        };
        let samples = request.samples.iter();
        let Some(requests) = samples.map(|lanes| flat_request(lanes, array.element_bytes)).collect() else {
            return Remedy::NotSimulated("an access to it is not to whole elements");
        };
        let place = groups.iter().position(|uses| uses.array == array).unwrap_or_else(|| {
            groups.push(Uses { array, facts: Vec::new(), uses: Vec::new() });
            groups.len() - 1
        });
        let Some(uses) = groups.get_mut(place) else { continue };
        uses.facts.push(fact);
        let (width_bytes, op) = (super::width(fact), super::operation(fact));
        uses.uses.push(AccessUse { width_bytes, op, requests });
    }
    let (here, others): (Vec<Uses>, Vec<Uses>) =
        groups.into_iter().partition(|uses| uses.array == array_here);
    let Some(here) = here.first() else { return Remedy::NothingHelps };
    if here.array.extents.len() < 2 {
        return flat(here, others.is_empty());
    }
    match better(here, false) {
        Some(better) if others.iter().all(|other| suits(other, better.layout)) => Remedy::Layout(better),
        Some(_) | None => Remedy::NothingHelps,
    }
}

fn array(base: &BaseFact) -> Option<ArrayUse> {
    let element_bytes = u32::try_from(base.element_bytes?.0).ok().filter(|&size| size > 0)?;
    Some(ArrayUse { extents: base.extents.clone(), element_bytes })
}

/// The flat element index of each lane; `None` where an address is not that of an element.
fn flat_request(lanes: &Lanes, element_bytes: u32) -> Option<IndexRequest> {
    let size = i64::from(element_bytes);
    let mut index = [0; 32];
    for (lane, address) in lanes.iter() {
        if address.checked_rem_euclid(size)? != 0 {
            return None;
        }
        *index.get_mut(lane as usize)? = address.checked_div_euclid(size)?;
    }
    Some(IndexRequest { active: lanes.active, index: vec![index] })
}

/// The best layout for one shape of the array; `None` if none is better.
fn better(uses: &Uses, is_flat: bool) -> Option<Better> {
    let (layout, total_before, total_after, extra_bytes) = match layout::search(&uses.array, &uses.uses) {
        layout::Remedy::Pad { elements, total_before, total_after, extra_bytes } => {
            (Layout::Pad { elements }, total_before, total_after, extra_bytes)
        }
        layout::Remedy::Swizzle { swizzle, total_before, total_after } => {
            (Layout::Swizzle(swizzle), total_before, total_after, 0)
        }
        layout::Remedy::None => return None,
    };
    let tallies = layout::simulate(&uses.array, &uses.uses, layout)?;
    let mut after: BTreeMap<(Span, Operation), Tally> = BTreeMap::new();
    for (fact, tally) in uses.facts.iter().zip(&tallies) {
        *after.entry((fact.span, fact.operation)).or_default() += *tally;
    }
    let extents = uses.array.extents.clone();
    Some(Better { layout, extents, is_flat, after, total_before, total_after, extra_bytes })
}

/// Whether a layout found for one instantiation makes no access of another one worse.
fn suits(uses: &Uses, layout: Layout) -> bool {
    let before = layout::simulate(&uses.array, &uses.uses, Layout::Plain);
    let after = layout::simulate(&uses.array, &uses.uses, layout);
    match (before, after) {
        (Some(before), Some(after)) => {
            before.iter().zip(&after).all(|(before, after)| after.units <= before.units)
        }
        _ => false,
    }
}

/// A flat array whose indices have rows in them: `s[tid * 32 + k]`, or every 128 bytes as for the strides of a tree.
fn flat(uses: &Uses, is_only: bool) -> Remedy {
    if !is_only {
        return Remedy::NotSimulated("it has several sizes");
    }
    let flat_index = uses.uses.iter().flat_map(|access| &access.requests).flat_map(|request| &request.index);
    let most = flat_index.flatten().copied().max().and_then(|most| u64::try_from(most).ok());
    let declared = uses.array.extents.iter().copied().fold(1, u64::saturating_mul);
    let length = most.unwrap_or(0).saturating_add(1).max(declared);
    let element_bytes = uses.array.element_bytes;
    let in_rows = |pitch: u64| Uses {
        array: ArrayUse { extents: vec![length.div_ceil(pitch.max(1)), pitch], element_bytes },
        facts: uses.facts.clone(),
        uses: uses.uses.clone(),
    };
    let found = pitches(uses).into_iter().filter_map(|pitch| better(&in_rows(pitch), true));
    found.min_by_key(|better| better.total_after).map_or(Remedy::NothingHelps, Remedy::Layout)
}

/// Row lengths to try, in elements: the distances between lanes that occur, and 128 bytes.
fn pitches(uses: &Uses) -> Vec<u64> {
    const MOST: usize = 6;
    let element = i64::from(uses.array.element_bytes.max(1));
    let strides = uses
        .facts
        .iter()
        .flat_map(|fact| fact.lane_terms.iter().filter_map(|term| term.coefficient).chain(fact.lane_stride));
    let elements = |bytes: i64| u64::try_from(bytes.checked_abs()?.checked_div(element)?).ok();
    let mut pitches: Vec<u64> = strides.filter_map(|stride| elements(stride.0)).collect();
    pitches.extend(elements(128));
    pitches.retain(|pitch| (4..=1024).contains(pitch));
    pitches.sort_unstable();
    pitches.dedup();
    pitches.truncate(MOST);
    pitches
}
