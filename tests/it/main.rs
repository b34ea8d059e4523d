//! One binary for all integration tests.

mod build;
mod cli;
mod cmd;
mod mask;
mod memory;
mod packages;
mod readme;
mod report;
mod rules;
#[cfg(feature = "verify")]
mod verify;
