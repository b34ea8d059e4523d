//! What the compiler merges is judged as what it becomes.
//!
//! nvcc moves neighbouring elements by one instruction where index and alignment allow it: `s[2 * t]`
//! and `s[2 * t + 1]` become one load of 8 bytes, an unrolled `s[4 * t + k]` one of 16. Each alone is a 2-way, 4-way
//! conflict; the wide one has none. Measured with nvcc 13 for sm_90.

use cudalint::ir::facts::{AccessFact, AccessPath, KernelFact, Operation, RequestFact};
use cudalint::memory::{Lanes, Tally, shared};

/// Whether the access becomes part of a wider one that does not conflict.
pub fn avoids_conflict(kernel: &KernelFact, at: usize) -> bool {
    let Some(access) = kernel.accesses.get(at) else { return false };
    let Some(request) = access.request.as_ref() else { return false };
    if access.operation == Operation::Atomic || access.path != AccessPath::Plain {
        return false;
    }
    [16, 8].into_iter().any(|wide| {
        wide > access.width.0
            && (with_neighbours(kernel, at, wide) || over_iterations(request, access, wide))
            && is_free(access, request, wide)
    })
}

/// Whether other accesses nearby take the rest of each lane's aligned piece of `wide` bytes.
fn with_neighbours(kernel: &KernelFact, at: usize, wide: i64) -> bool {
    let Some(access) = kernel.accesses.get(at) else { return false };
    let Some(offset) = offset_in(access, wide) else { return false };
    let width = access.width.0.max(1);
    let Some(first) = first_lane(access) else { return false };
    let mut missing: Vec<i64> =
        (0..wide / width).map(|part| part * width).filter(|&part| part != offset).collect();
    let after = kernel.accesses.iter().skip(at + 1).take_while(|other| !ends(access, other));
    let before = kernel.accesses.iter().take(at).rev().take_while(|other| !ends(access, other));
    for other in after.chain(before) {
        let fits =
            other.base == access.base && other.operation == access.operation && other.width == access.width;
        let Some(lane) = first_lane(other).filter(|_| fits) else { continue };
        if let Some(part) = offset_in(other, wide)
            && lane.wrapping_sub(part) == first.wrapping_sub(offset)
            && other.calls == access.calls
        {
            missing.retain(|&open| open != part);
        }
    }
    missing.is_empty()
}

/// Another kind of access to the same array keeps the compiler from moving the access past it.
fn ends(access: &AccessFact, other: &AccessFact) -> bool {
    other.base == access.base && other.operation != access.operation
}

fn first_lane(access: &AccessFact) -> Option<i64> {
    let lanes = access.request.as_ref()?.samples.first()?;
    lanes.iter().next().map(|(_, address)| address)
}

/// Where in an aligned piece of `wide` bytes the access lies, if that is the same for all lanes and requests.
fn offset_in(access: &AccessFact, wide: i64) -> Option<i64> {
    let mut offsets = access
        .request
        .as_ref()?
        .samples
        .iter()
        .flat_map(Lanes::iter)
        .map(|(_, address)| address.rem_euclid(wide));
    let first = offsets.next()?;
    offsets.all(|offset| offset == first).then_some(first)
}

/// Whether the loads of a loop's iterations walk through aligned pieces of `wide` bytes part by part, in every warp.
fn over_iterations(request: &RequestFact, access: &AccessFact, wide: i64) -> bool {
    let width = access.width.0.max(1);
    let next = |before: &Lanes, lanes: &Lanes| {
        let mut steps =
            lanes.iter().zip(before.iter()).map(|((_, here), (_, there))| here.wrapping_sub(there));
        lanes.active == before.active && steps.all(|step| step == width)
    };
    let walks: Vec<&[Lanes]> = request.samples.chunk_by(next).collect();
    access.operation == Operation::Load
        && !access.flow.loops.is_empty()
        && walks.iter().all(|walk| {
            let starts_aligned =
                |lanes: &Lanes| lanes.iter().all(|(_, address)| address.rem_euclid(wide) == 0);
            // The samples may end within a walk.
            let is_last = walks.last().is_some_and(|last| std::ptr::eq(*last, *walk));
            (walk.len() > 1 || is_last) && walk.first().is_some_and(starts_aligned)
        })
}

/// Whether the wide access costs what its bytes need, up to the rule's threshold.
fn is_free(access: &AccessFact, request: &RequestFact, wide: i64) -> bool {
    let mut tally = Tally::default();
    for lanes in &request.samples {
        let address = lanes.address.map(|address| address.wrapping_sub(address.rem_euclid(wide)));
        let aligned = Lanes { active: lanes.active, address };
        tally.add(shared::wavefronts(&aligned, u32::try_from(wide).unwrap_or(16), super::operation(access)));
    }
    let (Some(units), Some(ideal)) = (tally.mean_units(), tally.mean_ideal()) else { return false };
    !super::is_conflict(units, ideal)
}
