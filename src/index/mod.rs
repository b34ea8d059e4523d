//! Index expressions: symbols, canonical expressions, the affine view for words, evaluation over lanes for numbers.
//!
//! The question: which 32 byte addresses does one request of a warp touch? Lowering builds, for every access, an
//! expression over `threadIdx`, `blockIdx`, loop variables and unknowns. [`expr`] keeps expressions canonical, so that
//! equal ones are the same id; [`affine`] reads lane strides and causes from them; [`eval`] computes the addresses.

pub mod affine;
pub mod eval;
pub mod expr;
pub mod limits;
pub mod measure;
