//! One binary for all integration tests.

mod cli;
mod report;
