//! Local memory: how many sectors does a request of private addresses touch?
//!
//! A private array lies interleaved, one 4-byte word of each lane beside the same word of the next lane, so the
//! physical byte address of private byte `b` of lane `l` is `(b / 4 · 32 + l) · 4 + b % 4`. One index for the whole
//! warp is 4 sectors at 4 bytes per lane and 16 at 16 bytes; an index per lane is up to 32 sectors (measured on an
//! H200: 4, 16 and 30.25 on average for random indices).

use super::Lanes;
use super::device::{SECTOR_BYTES, WARP_LANES, WORD_BYTES};
use super::lanes::covered_cells;
use super::request::{Cost, units_filled};

/// Distinct sectors of one request. The addresses are private: bytes from the start of each lane's own stack frame.
pub fn sectors(lanes: &Lanes, width_bytes: u32) -> Cost {
    if width_bytes == 0 {
        return Cost::default();
    }
    let word = i64::from(WORD_BYTES);
    let mut ranges = Vec::new();
    for (lane, address) in lanes.iter() {
        let first = address.div_euclid(word);
        let last = address.saturating_add(i64::from(width_bytes) - 1).div_euclid(word);
        for private_word in (first..=last).take(MOST_WORDS) {
            let interleaved =
                private_word.saturating_mul(i64::from(WARP_LANES)).saturating_add(i64::from(lane));
            ranges.push((interleaved.saturating_mul(word), WORD_BYTES));
        }
    }
    let units = covered_cells(&mut ranges, SECTOR_BYTES);
    // A byte of a word cannot lie closer to the next lane's byte than a word.
    let whole_words = width_bytes.div_ceil(WORD_BYTES).saturating_mul(WORD_BYTES);
    Cost { units, ideal: units_filled(lanes, whole_words, SECTOR_BYTES).min(units) }
}

/// No instruction moves more than 5 words of a lane (16 bytes, unaligned); wider objects are several requests. The
/// limit is generous and keeps a nonsensical width from taking time.
const MOST_WORDS: usize = 1024;
