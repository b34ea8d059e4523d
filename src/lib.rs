//! cudalint: a static analyzer for CUDA memory access.
//!
//! ```text
//! text -syntax-> tree -lower-> unit -index, launch-> access facts -memory-> request
//!      -rules-> evidence -lint-> finding -report-> reader            finding -verify-> measurement
//! ```
//!
//! Modules stand in reading order; each uses only those before it.

extern crate self as cudalint;

pub mod source;

pub mod ir;

pub mod syntax;

pub mod memory;

pub mod index;

pub mod lower;

pub mod launch;

pub mod lint;

#[path = "../rules/mod.rs"]
pub mod rules;

pub mod report;

#[cfg(feature = "verify")]
pub mod verify;

pub mod cli;
