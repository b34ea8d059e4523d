//! One binary for all integration tests.

mod build;
mod cli;
mod mask;
mod memory;
mod report;
#[cfg(feature = "verify")]
mod verify;
