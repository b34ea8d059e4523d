//! What does one request of a warp cost?
//!
//! A *request* is one execution of one memory instruction by one warp. Given the byte addresses of its active
//! [`Lanes`] and the width of the access, the answer is a [`Cost`]: the units the hardware works through, and how
//! few would do.
//!
//! ```text
//! global, local   units = distinct 32-byte sectors             ideal = min(⌈active · width / 32⌉, units)
//! shared          units = wavefronts, by opcode and width      ideal = min(⌈active · width / 128⌉, units)
//! constant        units = distinct 4-byte words                ideal = 1
//! ```
//!
//! A worked example: lanes 0…31 load a `float` at element `2·lane`, byte `8·lane`. From global memory they touch
//! bytes 0…251, that is ⌈252 / 32⌉ = 8 sectors where ⌈32 · 4 / 32⌉ = 4 would do. From shared memory lanes `l` and
//! `l + 16` want different words of one bank, 2 wavefronts where 1 would do.
//!
//! This floor knows numbers, not source: no spans, no expressions, no input or output, no state. Every rule here was
//! measured request by request on an NVIDIA H200 (sm_90) with Nsight Compute; `fixtures/memory` holds a
//! sample of those measurements, and `tests/it/memory.rs` repeats the rules as plainly as possible.
//!
//! In reading order: [`device`] the constants, [`lanes`] who is in a warp and where it points, [`request`] costs and
//! their sums, then a file per memory space, and [`layout`], which tries other layouts of a shared array.

pub mod device;

pub mod lanes;

pub mod request;

pub mod global;

pub mod local;

pub mod constant;

pub mod shared;

pub mod layout;

pub use lanes::{Lanes, thread_of, warp_count};
pub use request::{Cost, Tally};
pub use shared::SharedOp;
