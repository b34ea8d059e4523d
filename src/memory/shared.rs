//! Shared memory: how many wavefronts does a request take?
//!
//! Shared memory has 32 banks of 4-byte words; byte address `a` lies in word `a / 4` of bank `a / 4 % 32`. A wavefront
//! takes one word from each bank, and lanes that want the same word get it together. So the unit of the rules is
//!
//! ```text
//! deg(lanes) = max over banks of the number of distinct words the lanes want in that bank
//! ```
//!
//! | instruction | wavefronts |
//! |---|---|
//! | load or store of 1, 2, 4 bytes | deg(warp) |
//! | store of 8 bytes | deg(lanes 0…15) + deg(lanes 16…31) |
//! | store of 16 bytes | Σ deg over the four quarters of the warp |
//! | load of 8 bytes | if M then deg(warp), else Σ deg over the halves |
//! | load of 16 bytes | if M then Σ deg over the halves, else Σ deg over the quarters |
//! | atomic add, max, exchange of 4 bytes | max over banks of the number of *lanes* |
//! | atomic increment, result unused (`ATOMS.POPC.INC`) | deg(warp) |
//! | atomic compare-and-swap of 4 bytes | twice the lanes of the busiest bank |
//! | `ldmatrix`, `stmatrix` of n matrices | Σ deg over the 8 row addresses (16 bytes) of each matrix |
//!
//! M, the merge condition of wide loads: every active lane `i` finds lane `i ^ 1` inactive or at its own address, or
//! every active lane finds so of lane `i ^ 2`.
//!
//! Worked example: `float` at lane stride 2, `s[2·lane]`. Lane `l` wants word `2l` of bank `2l % 32`: lanes `l` and
//! `l + 16` meet in one bank with two words, deg = 2, where ⌈32 · 4 / 128⌉ = 1 wavefront would do.
//!
//! Measured on an H200 request by request (Nsight Compute), in sum (hardware counters) and in cycles. The profiler's
//! own value per instruction departs from these for wide loads: [`profiled`].

use std::ops::RangeInclusive;

use super::Lanes;
use super::device::{BANKS, WAVEFRONT_BYTES, WIDEST_ACCESS_BYTES, WORD_BYTES};
use super::request::{Cost, units_filled};

/// What a shared-memory instruction does: it decides which lanes meet and whether equal words merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedOp {
    Load,
    /// Also for `cp.async` of 4 and 8 bytes, whose shared-memory side takes at least as much.
    Store,
    /// Add, minimum, maximum, bit operations and exchange on 32-bit integers: one native instruction.
    Atomic,
    /// `atomicAdd` of the constant 1 with the result unused: lanes at one address merge.
    AtomicIncrement,
    /// `atomicCAS` on 32 bits.
    AtomicCas,
    /// What the hardware has no instruction for (`atomicAdd` on float, double, 64-bit integers): a loop of load and
    /// compare-and-swap that serves one lane of each bank in turn. The cost is that of the compare-and-swaps.
    AtomicLoop,
    /// `ldmatrix`, `stmatrix` of 1, 2 or 4 matrices; lanes 8i…8i+7 hold the row addresses of matrix i.
    Matrix(u8),
}

/// The wavefronts of one request of `width_bytes` per lane.
///
/// A width that no instruction has is moved by several: 12 bytes by three of 4, 32 bytes by two of 16.
pub fn wavefronts(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> Cost {
    match op {
        SharedOp::Load | SharedOp::Store => in_instructions(lanes, width_bytes, op),
        SharedOp::AtomicIncrement => merging(lanes, width_bytes, op),
        SharedOp::Matrix(_) => matrix(lanes, op),
        SharedOp::Atomic => atomic(lanes, width_bytes, 1),
        SharedOp::AtomicCas | SharedOp::AtomicLoop => atomic(lanes, width_bytes, 2),
    }
}

/// The fewest and the most wavefronts that the profiler's value per instruction, `memory_l1_wavefronts_shared`, may say.
///
/// It is not counted by the hardware, and for wide loads not what the hardware counts. Measured on an H200:
///
/// | load | the profiler says | fit |
/// |---|---|---|
/// | 8 bytes | deg(warp) if M and that is 1, else Σ deg over the halves | 432 of 432 |
/// | 16 bytes by all lanes | of each half deg if M and that is 1, else Σ deg over its quarters | 178 of 178 |
/// | 16 bytes by some lanes | at least deg(warp) and ⌈active / 16⌉, at most Σ deg over the quarters | 302 of 302 |
///
/// Eight lanes in four quarters at one address: 1, where the hardware takes 2 and 2 cycles.
pub fn profiled(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> RangeInclusive<u32> {
    let exact = |units: u32| units..=units;
    let piece_bytes = instruction_bytes(width_bytes);
    if op != SharedOp::Load || piece_bytes <= WORD_BYTES {
        return exact(wavefronts(lanes, width_bytes, op).units);
    }
    let pieces = width_bytes / piece_bytes;
    let of = |group: u32| degree(lanes, group, piece_bytes);
    let merged = merges(lanes);
    let joined = |group: u32, parts: &[u32]| match of(group) {
        1 if merged => 1,
        _ => parts.iter().map(|&part| of(part)).sum(),
    };
    let said = if piece_bytes <= 2 * WORD_BYTES {
        exact(joined(WARP, &HALVES))
    } else if lanes.active == WARP {
        let [first, second] = HALVES;
        let [a, b, c, d] = QUARTERS;
        exact(joined(first, &[a, b]) + joined(second, &[c, d]))
    } else {
        let most = QUARTERS.iter().map(|&quarter| of(quarter)).sum();
        of(WARP).max(lanes.count().div_ceil(16)).min(most)..=most
    };
    said.start().saturating_mul(pieces)..=said.end().saturating_mul(pieces)
}

/// Splits a wide access into instructions of one width. An instruction `k` words on has the same conflicts as the
/// first: all its banks are turned alike. So only offsets within a word need a look.
fn in_instructions(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> Cost {
    let piece_bytes = instruction_bytes(width_bytes);
    let pieces = width_bytes / piece_bytes;
    if pieces == 1 {
        return merging(lanes, piece_bytes, op);
    }
    let mut total = Cost::default();
    if pieces == 0 {
        return total;
    }
    let phases = (WORD_BYTES / piece_bytes).clamp(1, pieces);
    for phase in 0..phases {
        let shift = i64::from(phase * piece_bytes);
        let shifted = Lanes { active: lanes.active, address: lanes.address.map(|a| a.saturating_add(shift)) };
        let cost = merging(&shifted, piece_bytes, op);
        let times = (pieces - phase).div_ceil(phases);
        total += Cost { units: cost.units.saturating_mul(times), ideal: cost.ideal.saturating_mul(times) };
    }
    total
}

/// The widest instruction that divides a width: objects are aligned no better than their size tells.
fn instruction_bytes(width_bytes: u32) -> u32 {
    1 << width_bytes.trailing_zeros().min(WIDEST_ACCESS_BYTES.ilog2())
}

/// One instruction whose lanes merge on equal words, in each group of lanes on its own.
fn merging(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> Cost {
    let units = groups(lanes, width_bytes, op).map(|group| degree(lanes, group, width_bytes)).sum();
    Cost { units, ideal: units_filled(lanes, width_bytes, WAVEFRONT_BYTES).min(units) }
}

/// The row addresses of each matrix are one group of 8 lanes.
fn matrix(lanes: &Lanes, op: SharedOp) -> Cost {
    let mut rows = lanes.clone();
    rows.active &= groups(lanes, ROW_BYTES, op).fold(0, |all, group| all | group);
    merging(&rows, ROW_BYTES, op)
}

/// Bytes of a row of an 8x8 matrix of 2-byte elements.
const ROW_BYTES: u32 = 16;

/// One wavefront (two for a compare-and-swap, twice that for 8 bytes) for every lane on the busiest bank.
/// The best is as much as lanes in distinct banks take. Of 8-byte atomics only `atomicAdd`, a loop, was measured.
fn atomic(lanes: &Lanes, width_bytes: u32, per_turn: u32) -> Cost {
    let per_turn = per_turn * if width_bytes > WORD_BYTES { 2 } else { 1 };
    let turns = groups(lanes, width_bytes, SharedOp::Atomic)
        .map(|group| busiest(&words_in_banks(lanes, group, width_bytes)).map_or(0, |bank| bank.len() as u32))
        .max()
        .unwrap_or(0);
    let units = turns.saturating_mul(per_turn);
    Cost { units, ideal: per_turn.min(units) }
}

const WARP: u32 = u32::MAX;
const HALVES: [u32; 2] = [0x0000_FFFF, 0xFFFF_0000];
const QUARTERS: [u32; 4] = [0x0000_00FF, 0x0000_FF00, 0x00FF_0000, 0xFF00_0000];

/// The groups of lanes, as bit masks, that an instruction serves one after another.
fn groups(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> impl Iterator<Item = u32> {
    let merged = op == SharedOp::Load && width_bytes > 4 && merges(lanes);
    let groups: &'static [u32] = match op {
        SharedOp::Matrix(matrices) => QUARTERS.get(..usize::from(matrices)).unwrap_or(&QUARTERS),
        SharedOp::AtomicIncrement => &[WARP],
        SharedOp::Load | SharedOp::Store | SharedOp::Atomic | SharedOp::AtomicCas | SharedOp::AtomicLoop => {
            match width_bytes {
                0..=4 => &[WARP],
                5..=8 if merged => &[WARP],
                5..=8 => &HALVES,
                _ if merged => &HALVES,
                _ => &QUARTERS,
            }
        }
    };
    groups.iter().copied()
}

/// The merge condition M of wide loads.
fn merges(lanes: &Lanes) -> bool {
    let pairs = |distance: u32| {
        lanes.iter().all(|(lane, address)| lanes.get(lane ^ distance).is_none_or(|other| other == address))
    };
    pairs(1) || pairs(2)
}

/// The largest number of distinct words that the lanes of a group want in one bank.
fn degree(lanes: &Lanes, group: u32, width_bytes: u32) -> u32 {
    let mut words = words_in_banks(lanes, group, width_bytes);
    words.dedup();
    busiest(&words).map_or(0, |bank| bank.len() as u32)
}

/// The words that lanes want, one entry for each lane and word, ordered by bank and then by word.
///
/// A word is kept as its index turned right by five bits: the bank comes to the top and sorting brings it together.
fn words_in_banks(lanes: &Lanes, group: u32, width_bytes: u32) -> Vec<u64> {
    let word = i64::from(WORD_BYTES);
    let reach = i64::from(width_bytes.clamp(1, WIDEST_ACCESS_BYTES)) - 1;
    let mut words = Vec::with_capacity(64);
    for (_, address) in lanes.among(group) {
        let last = address.saturating_add(reach).div_euclid(word);
        words.extend((address.div_euclid(word)..=last).map(|index| (index as u64).rotate_right(BANK_BITS)));
    }
    if !words.is_sorted() {
        words.sort_unstable();
    }
    words
}

const BANK_BITS: u32 = BANKS.ilog2();

fn bank_of(turned: u64) -> u32 {
    (turned >> (u64::BITS - BANK_BITS)) as u32
}

/// The entries of the bank with most entries; the first such bank.
fn busiest(words: &[u64]) -> Option<&[u64]> {
    words.chunk_by(|a, b| bank_of(*a) == bank_of(*b)).rev().max_by_key(|bank| bank.len())
}

/// The place where a request conflicts most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// 0…31.
    pub bank: u32,
    /// The lanes that meet in the bank, ascending, of the group of lanes that is served together.
    pub lanes: Vec<u32>,
    /// The distinct words they want there, ascending: byte address / 4.
    pub words: Vec<i64>,
}

/// The bank with most distinct words (for an atomic: most lanes) in any group of lanes served together, and the lanes
/// that meet there; `None` if no bank serves twice.
pub fn witness(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> Option<Witness> {
    let width_bytes = match op {
        SharedOp::Matrix(_) => ROW_BYTES,
        SharedOp::Load
        | SharedOp::Store
        | SharedOp::Atomic
        | SharedOp::AtomicIncrement
        | SharedOp::AtomicCas
        | SharedOp::AtomicLoop => instruction_bytes(width_bytes),
    };
    let counts_lanes = match op {
        SharedOp::Atomic | SharedOp::AtomicCas | SharedOp::AtomicLoop => true,
        SharedOp::Load | SharedOp::Store | SharedOp::AtomicIncrement | SharedOp::Matrix(_) => false,
    };
    let mut worst: Option<(usize, u32, u32)> = None;
    for group in groups(lanes, width_bytes, op) {
        let mut words = words_in_banks(lanes, group, width_bytes);
        if !counts_lanes {
            words.dedup();
        }
        let Some(bank) = busiest(&words) else { continue };
        if bank.len() > worst.map_or(1, |(most, ..)| most) {
            worst = bank.first().map(|&word| (bank.len(), bank_of(word), group));
        }
    }
    worst.map(|(_, bank, group)| meeting(lanes, group, width_bytes, bank))
}

/// The lanes of a group that want a word of a bank, and those words.
fn meeting(lanes: &Lanes, group: u32, width_bytes: u32, bank: u32) -> Witness {
    let word = i64::from(WORD_BYTES);
    let mut found = Witness { bank, lanes: Vec::new(), words: Vec::new() };
    for (lane, address) in lanes.among(group) {
        let last = address.saturating_add(i64::from(width_bytes) - 1).div_euclid(word);
        let mut here = (address.div_euclid(word)..=last)
            .filter(|index| index.rem_euclid(i64::from(BANKS)) == i64::from(bank))
            .peekable();
        if here.peek().is_some() {
            found.lanes.push(lane);
            found.words.extend(here);
        }
    }
    found.words.sort_unstable();
    found.words.dedup();
    found
}

/// A bound that no layout of the array undercuts: one wavefront for each group of lanes that is served on its own.
/// Which groups there are depends on which lanes share an address, and no layout changes that.
pub(super) fn least(lanes: &Lanes, width_bytes: u32, op: SharedOp) -> u32 {
    match op {
        SharedOp::Load | SharedOp::Store | SharedOp::Matrix(_) => {
            groups(lanes, width_bytes.min(WIDEST_ACCESS_BYTES), op)
                .filter(|group| lanes.active & group != 0)
                .count() as u32
        }
        SharedOp::Atomic | SharedOp::AtomicIncrement | SharedOp::AtomicCas | SharedOp::AtomicLoop => {
            u32::from(lanes.active != 0)
        }
    }
}
