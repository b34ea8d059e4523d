//! One place in the source in every launch and call chain that reaches it: findings fold into these.

use std::collections::BTreeMap;

use super::super::ir::facts::{
    AccessFact, KernelFact, MemorySpace, Operation, RequestFact, ShapeSource, TrailStep,
};
use super::super::memory::device::SECTOR_BYTES;
use super::super::memory::{Lanes, global};
use super::super::source::{FileId, Sources, Span};
use super::finding::Numbers;
use super::rule::Context;

/// An access as one launch of one kernel executes it.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub kernel: &'a KernelFact,
    pub access: &'a AccessFact,
}

/// A load, store or atomic in the source with everything known of it. Never empty.
pub struct Place<'a> {
    pub span: Span,
    pub operation: Operation,
    pub seen: Vec<Seen<'a>>,
}

/// The accesses of a memory space by position and operation.
pub fn places<'a>(cx: &Context<'a>, space: MemorySpace) -> Vec<Place<'a>> {
    let mut places: BTreeMap<(Span, Operation), Vec<Seen<'a>>> = BTreeMap::new();
    for kernel in cx.kernels {
        for access in kernel.accesses.iter().filter(|access| access.space == space && !access.is_repeated) {
            places.entry((access.span, access.operation)).or_default().push(Seen { kernel, access });
        }
    }
    places.into_iter().map(|((span, operation), seen)| Place { span, operation, seen }).collect()
}

/// Is it one request of a block of several warps, beside loops that do the block's work? What a result costs to store is
/// nothing then, however its lanes lie.
pub fn is_once_a_block(seen: &Seen<'_>) -> bool {
    let Seen { kernel, access } = seen;
    let [x, y, z] = kernel.shape_of(access).block;
    let one = access.request.as_ref().is_some_and(|request| request.warps == 1);
    one && access.flow.loops.is_empty()
        && x * y * z > 32
        && kernel.accesses.iter().any(|other| !other.flow.loops.is_empty())
}

/// The launches that `seen` come from: kernel instance and block shape, each once.
pub fn launches<'a>(seen: &[Seen<'a>]) -> Vec<&'a KernelFact> {
    let mut launches: Vec<&KernelFact> = Vec::new();
    for Seen { kernel, .. } in seen {
        let is_same = |known: &&KernelFact| {
            known.name == kernel.name && known.shape == kernel.shape && known.seen_from == kernel.seen_from
        };
        if !launches.iter().any(is_same) {
            launches.push(kernel);
        }
    }
    launches
}

/// `load of`, `store to`, `atomic on`: what stands before the access in a message.
pub fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Load => "load of",
        Operation::Store => "store to",
        Operation::Atomic => "atomic on",
    }
}

/// The source of an access with white space folded, cut to a length that fits a message.
pub fn access_text(sources: &Sources, span: Span) -> String {
    let text = super::fingerprint::squeeze(sources.text(span));
    let spaced: String = sources.text(span).split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if spaced.len() < 48 { spaced } else { text };
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or("")),
        None => text,
    }
}

/// `4`, `4.5`, `12.25`: a mean, with at most two decimals and none that say nothing.
pub fn mean(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned()
}

/// Units per request in words: `4`, `8 to 9.5`.
pub fn units(request: &RequestFact) -> String {
    request.units_in_words(mean)
}

/// The sectors per request that the bytes which the lanes move would fill, each byte once: [`RequestFact::ideal`] counts the bytes of
/// every lane, as Nsight Compute does, also where lanes share them.
pub fn ideal_sectors(access: &AccessFact, request: &RequestFact) -> f64 {
    let width = width_of(access);
    let (mut distinct, mut counted) = (0, 0);
    for lanes in &request.samples {
        distinct += global::union(&[(lanes, width)]).used_bytes.div_ceil(SECTOR_BYTES);
        counted += global::sectors(lanes, width).ideal;
    }
    request.ideal * f64::from(distinct.min(counted)) / f64::from(counted.max(1))
}

/// The share of the touched sectors' bytes that the lanes use, 0…1, over the requests that were kept.
pub fn used_share(access: &AccessFact, request: &RequestFact) -> f64 {
    let width = width_of(access);
    let (mut used, mut touched) = (0u64, 0u64);
    for lanes in &request.samples {
        let union = global::union(&[(lanes, width)]);
        used += u64::from(union.used_bytes);
        touched += u64::from(union.sectors) * u64::from(SECTOR_BYTES);
    }
    if touched == 0 { 1.0 } else { used as f64 / touched as f64 }
}

/// What one instruction moves per lane, in bytes.
pub fn width_of(access: &AccessFact) -> u32 {
    u32::try_from(access.width.0).unwrap_or(4).clamp(1, 64)
}

/// The numbers of a global access in one launch.
pub fn sector_numbers(seen: Seen<'_>) -> Numbers {
    let Seen { kernel, access } = seen;
    let request = access.request.as_ref();
    Numbers {
        launch_shape: Some(kernel.shape_of(access).to_string()),
        launch_source: Some(kernel.shape.source.to_string()),
        space: Some(access.space),
        operation: Some(access.operation),
        access_bytes: Some(access.width),
        lane_stride: access.lane_stride,
        sectors: request.map(|request| request.units),
        ideal_sectors: request.map(|request| ideal_sectors(access, request)),
        wavefronts: None,
        ideal_wavefronts: None,
        confidence: Some(access.confidence),
        assumptions: access.assumptions.clone(),
    }
}

/// From the launch over the calls to the address.
pub fn trail(seen: Seen<'_>) -> Vec<TrailStep> {
    let Seen { kernel, access } = seen;
    let mut steps = Vec::new();
    if let Some(span) = kernel.shape.span {
        let text = match kernel.shape.source {
            ShapeSource::Hypothesis => format!("`{}` is launched here", kernel.name),
            _ => format!("`{}` is launched here with blocks of {}", kernel.name, kernel.shape),
        };
        steps.push(TrailStep { span, text });
    }
    for &span in &access.calls {
        steps.push(TrailStep { span, text: "called here".to_owned() });
    }
    if access.index.chars().count() <= 120 {
        let text = format!("the byte offset is {}", access.index);
        steps.push(TrailStep { span: access.span, text });
    }
    steps
}

/// The kernels that reach a place, where there are several; and the launches that are fine, where some are.
pub fn reach_note(all: &[Seen<'_>], bad: &[Seen<'_>]) -> Option<String> {
    let (all, bad) = (launches(all), launches(bad));
    let mut names: Vec<&str> = bad.iter().map(|kernel| kernel.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if bad.len() < all.len() {
        let few = names.iter().take(3).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Some(format!("in {} of the {} launches that were looked at: {few}", bad.len(), all.len()));
    }
    if names.len() < 2 {
        return None;
    }
    let few = names.iter().take(4).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let more = if names.len() > 4 { format!(" and {} more", names.len() - 4) } else { String::new() };
    Some(format!("reached from {few}{more}; the numbers are the worst of them"))
}

/// What an access costs as each of several files includes it, where that differs.
pub fn view_note(sources: &Sources, seen: &[Seen<'_>]) -> Option<String> {
    let mut views: Vec<(FileId, String)> = Vec::new();
    for Seen { kernel, access } in seen {
        let (Some(from), Some(request)) = (kernel.seen_from, access.request.as_ref()) else { continue };
        if !views.iter().any(|(known, _)| *known == from) {
            views.push((
                from,
                format!("{} where {} would do", units(request), mean(ideal_sectors(access, request))),
            ));
        }
    }
    let (_, first) = views.first()?;
    if views.iter().all(|(_, cost)| cost == first) {
        return None;
    }
    let told =
        views.iter().take(3).map(|(from, cost)| format!("{cost} as `{}`", sources.path(*from).display()));
    let told: Vec<String> = told.collect();
    Some(format!("the file is not the same for all who include it: {} includes it", told.join(", ")))
}

/// Sectors over the ideal if every access to a field moved its whole struct; `None` for accesses to no struct. Near 1, the
/// elements lie without gaps and the layout is what spreads a field; else the index leaves gaps. Infinite where lanes are known to be at least
/// two structs apart.
pub fn whole_struct_ratio(access: &AccessFact) -> Option<f64> {
    let (field, request) = (access.field.as_ref()?, access.request.as_ref()?);
    let size = u32::try_from(field.struct_bytes.0).ok()?;
    // Rows that end with a struct, every second struct: few lanes may hide the gaps in the sectors' rounding.
    if access.lane_stride.is_some_and(|stride| stride.0.abs() >= 2 * field.struct_bytes.0) {
        return Some(f64::INFINITY);
    }
    let start = field.used.iter().map(|(start, _)| start.0).min().unwrap_or(0);
    let (mut units, mut ideal) = (0, 0);
    for lanes in &request.samples {
        let whole = Lanes::from_fn(|lane| lanes.get(lane).map(|address| address - start));
        let cost = global::sectors(&whole, size);
        units += cost.units;
        ideal += cost.ideal;
    }
    Some(f64::from(units) / f64::from(ideal.max(1)))
}
