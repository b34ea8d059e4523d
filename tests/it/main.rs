//! One binary for all integration tests.

mod build;
mod cli;
mod cmd;
mod packages;
mod mask;
mod memory;
mod report;
#[cfg(feature = "verify")]
mod verify;
