//! One binary for all integration tests.

mod cli;
mod memory;
mod report;
