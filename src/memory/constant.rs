//! Constant memory: how many passes does a request take?
//!
//! The constant cache serves one 4-byte word to all lanes that want it; distinct words are served one after another.
//! Measured on an H200: a kernel with loads of 32, 4, 2 and 32 distinct words per warp makes exactly 70 requests to
//! the constant cache per warp, and 2, 4, 8, 16, 32 distinct words cost 1.83, 3.59, 7.1, 14, 28 times one.

use super::Lanes;
use super::device::WORD_BYTES;
use super::request::Cost;

/// Distinct 4-byte words of one request; the ideal is the words one lane needs.
pub fn words(lanes: &Lanes, width_bytes: u32) -> Cost {
    let units = lanes.cells(width_bytes, WORD_BYTES);
    Cost { units, ideal: width_bytes.div_ceil(WORD_BYTES).min(units) }
}
