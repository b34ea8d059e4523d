//! What would take the conflicts of an array away, simulated over every access to it.

use std::collections::BTreeSet;

use cudalint::ir::facts::{AccessFact, BaseFact, KernelFact};
use cudalint::lint::rule::Context;
use cudalint::memory::layout::{self, AccessUse, ArrayUse, IndexRequest, Layout};
use cudalint::memory::{Lanes, Tally};
use cudalint::source::Span;

/// The answer for one array.
pub enum Remedy {
    /// Another layout is better in total and worse for no access.
    Layout(Better),
    /// All layouts tried leave the conflicts or move them.
    NothingHelps,
    /// No layout was simulated, and why.
    NotSimulated(&'static str),
}

/// A layout that helps.
pub struct Better {
    pub layout: Layout,
    /// The extents it was simulated for: those of the declaration, or rows seen in a flat array.
    pub extents: Vec<u64>,
    /// The rows are not in the declaration.
    pub is_flat: bool,
    /// Wavefronts per request of the access under report.
    pub after: f64,
    /// Wavefronts over all simulated requests of the array.
    pub total_before: u64,
    pub total_after: u64,
    pub extra_bytes: u64,
    /// Accesses of the source that were simulated.
    pub accesses: usize,
}

/// Accesses to one array of one shape.
struct Uses<'a> {
    array: ArrayUse,
    facts: Vec<&'a AccessFact>,
    uses: Vec<AccessUse>,
}

/// Finds the best layout of the array that `access` is to, over every launch of every kernel that uses it.
pub fn find(cx: &Context, kernel: &KernelFact, access: &AccessFact, base: &BaseFact) -> Remedy {
    let unsized_elements = Remedy::NotSimulated("the size of its elements is not known");
    let Some(array_here) = array(base) else { return unsized_elements };
    let mut groups: Vec<Uses> = Vec::new();
    for (other, fact) in accesses_to(cx, kernel, base) {
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
        return flat(here, access, others.is_empty());
    }
    match better(here, access, false) {
        Some(better) if others.iter().all(|other| suits(other, better.layout)) => Remedy::Layout(better),
        Some(_) | None => Remedy::NothingHelps,
    }
}

/// Every access to the array declared where `base` is, in all launches; without a declaration, those of this kernel.
fn accesses_to<'a>(
    cx: &Context<'a>,
    kernel: &'a KernelFact,
    base: &'a BaseFact,
) -> Vec<(&'a BaseFact, &'a AccessFact)> {
    let same = |of: &KernelFact, other: &BaseFact| {
        other.space == base.space
            && match base.declaration {
                Some(_) => other.declaration == base.declaration,
                None => of.span == kernel.span && other.name == base.name,
            }
    };
    let mut found = Vec::new();
    for of in cx.kernels {
        for fact in &of.accesses {
            if let Some(other) = of.bases.get(fact.base).filter(|other| same(of, other)) {
                found.push((other, fact));
            }
        }
    }
    found
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
fn better(uses: &Uses, access: &AccessFact, is_flat: bool) -> Option<Better> {
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
    let mut of_access = Tally::default();
    for (fact, tally) in uses.facts.iter().zip(&tallies) {
        if fact.span == access.span && fact.operation == access.operation {
            of_access += *tally;
        }
    }
    let places: BTreeSet<(Span, _)> = uses.facts.iter().map(|fact| (fact.span, fact.operation)).collect();
    Some(Better {
        layout,
        extents: uses.array.extents.clone(),
        is_flat,
        after: of_access.mean_units()?,
        total_before,
        total_after,
        extra_bytes,
        accesses: places.len(),
    })
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

/// A flat array whose conflicting index has rows in it: `s[tid * 32 + k]`, or every 32 elements for trees.
fn flat(uses: &Uses, access: &AccessFact, is_only: bool) -> Remedy {
    if !is_only {
        return Remedy::NotSimulated("it has several sizes");
    }
    let element = i64::from(uses.array.element_bytes.max(1));
    let strides = access.lane_terms.iter().filter_map(|term| term.coefficient);
    let mut pitches: Vec<u64> = strides
        .chain(access.lane_stride)
        .filter_map(|stride| u64::try_from(stride.0.checked_abs()?.checked_div(element)?).ok())
        .filter(|pitch| (4..=1024).contains(pitch))
        .collect();
    pitches.push(128_u64.checked_div(element.unsigned_abs()).unwrap_or(32).max(4));
    pitches.sort_unstable();
    pitches.dedup();
    let most = uses
        .uses
        .iter()
        .flat_map(|access| &access.requests)
        .flat_map(|request| request.index.iter().flat_map(|index| index.iter().copied()));
    let length = most.max().and_then(|most| u64::try_from(most).ok()).unwrap_or(0).saturating_add(1);
    let length = length.max(uses.array.extents.iter().product());
    let rows_of = |pitch: u64| Uses {
        array: ArrayUse {
            extents: vec![length.div_ceil(pitch.max(1)), pitch],
            element_bytes: uses.array.element_bytes,
        },
        facts: uses.facts.clone(),
        uses: uses.uses.clone(),
    };
    let found = pitches
        .into_iter()
        .filter_map(|pitch| better(&rows_of(pitch), access, true))
        .min_by_key(|better| better.total_after);
    found.map_or(Remedy::NothingHelps, Remedy::Layout)
}
