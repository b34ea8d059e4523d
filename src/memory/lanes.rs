//! Who is in a warp, and where each lane points.
//!
//! The linear id of a thread is `x + y·bx + z·bx·by`; 32 consecutive ids form a warp and the last warp may be partial.
//! In a 16x16 block lane 17 of warp 2 is linear id 81 = 1 + 5·16, the thread (1, 5, 0). Source: CUDA C++ Programming
//! Guide, "Thread Hierarchy"; measured on twelve block shapes from 1x256 to 8x8x8.

use super::device::WARP_LANES;

const LANES: usize = WARP_LANES as usize;

/// The byte addresses of one request: one for each active lane.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// Bit `l` is set where lane `l` takes part in the request.
    pub active: u32,
    /// The byte address of each lane; the entries of inactive lanes mean nothing.
    pub address: [i64; LANES],
}

impl Lanes {
    /// A request of no lane.
    pub const NONE: Lanes = Lanes { active: 0, address: [0; LANES] };

    /// Asks `address_of` for the byte address of each lane; `None` is an inactive lane.
    pub fn from_fn(mut address_of: impl FnMut(u32) -> Option<i64>) -> Lanes {
        let mut lanes = Lanes::NONE;
        for (lane, slot) in (0u32..).zip(lanes.address.iter_mut()) {
            if let Some(address) = address_of(lane) {
                *slot = address;
                lanes.active |= 1 << lane;
            }
        }
        lanes
    }

    /// Asks `address_of` for the byte address of each thread of warp number `warp` of a block.
    pub fn of_warp(block: [u32; 3], warp: u32, mut address_of: impl FnMut([u32; 3]) -> Option<i64>) -> Lanes {
        Lanes::from_fn(|lane| thread_of(block, warp, lane).and_then(&mut address_of))
    }

    /// The number of active lanes.
    pub fn count(&self) -> u32 {
        self.active.count_ones()
    }

    /// The active lanes among those of the bit mask `among`, ascending, with their byte addresses.
    pub fn among(&self, among: u32) -> impl Iterator<Item = (u32, i64)> + '_ {
        let wanted = self.active & among;
        (0u32..).zip(self.address).filter(move |(lane, _)| wanted >> lane & 1 == 1)
    }

    /// The active lanes, ascending, with their byte addresses.
    pub fn iter(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        self.among(u32::MAX)
    }

    /// The address of a lane; `None` where it is inactive.
    pub fn get(&self, lane: u32) -> Option<i64> {
        let active = self.active.checked_shr(lane).is_some_and(|bits| bits & 1 == 1);
        self.address.get(lane as usize).copied().filter(|_| active)
    }

    /// The number of distinct aligned cells of `cell_bytes` that the active lanes touch with `width_bytes` each.
    pub(super) fn cells(&self, width_bytes: u32, cell_bytes: u32) -> u32 {
        let mut ranges = [(0, 0); LANES];
        let count = self.count() as usize;
        for (slot, (_, address)) in ranges.iter_mut().zip(self.iter()) {
            *slot = (address, width_bytes);
        }
        covered_cells(ranges.get_mut(..count).unwrap_or_default(), cell_bytes)
    }
}

/// Equal where the same lanes are active and point to the same bytes.
impl PartialEq for Lanes {
    fn eq(&self, other: &Lanes) -> bool {
        self.active == other.active && self.iter().eq(other.iter())
    }
}

impl Eq for Lanes {}

/// The number of distinct aligned cells of `cell_bytes` that byte ranges `(address, width in bytes)` touch.
/// Works on whole ranges, so the width of an access does not matter to its speed. Reorders `ranges`.
pub(super) fn covered_cells(ranges: &mut [(i64, u32)], cell_bytes: u32) -> u32 {
    if !ranges.is_sorted() {
        ranges.sort_unstable();
    }
    let cell = i64::from(cell_bytes.max(1));
    let mut covered: i64 = 0;
    // The first cell that no range so far has reached.
    let mut free = i64::MIN;
    for &(address, width) in ranges.iter() {
        let Some(reach) = width.checked_sub(1) else { continue };
        let first = address.div_euclid(cell).max(free);
        let last = address.saturating_add(i64::from(reach)).div_euclid(cell);
        if last >= first {
            covered += last - first + 1;
            free = last.saturating_add(1);
        }
    }
    u32::try_from(covered).unwrap_or(u32::MAX)
}

/// The number of warps of a block, the last one counted even if partial; 0 for a block without threads.
pub fn warp_count(block: [u32; 3]) -> u32 {
    u32::try_from(thread_count(block).div_ceil(u128::from(WARP_LANES))).unwrap_or(u32::MAX)
}

/// The thread index `(x, y, z)` of a lane; `None` where the last warp has no such lane.
pub fn thread_of(block: [u32; 3], warp: u32, lane: u32) -> Option<[u32; 3]> {
    let id = u64::from(warp) * u64::from(WARP_LANES) + u64::from(lane);
    if lane >= WARP_LANES || u128::from(id) >= thread_count(block) {
        return None;
    }
    let [bx, by, _] = block.map(u64::from);
    let x = id.checked_rem(bx)?;
    let row = id.checked_div(bx)?;
    let y = row.checked_rem(by)?;
    let z = row.checked_div(by)?;
    Some([u32::try_from(x).ok()?, u32::try_from(y).ok()?, u32::try_from(z).ok()?])
}

fn thread_count(block: [u32; 3]) -> u128 {
    block.into_iter().map(u128::from).product()
}
