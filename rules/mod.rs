//! The rules: a room each, and the list of all of them.

use cudalint::lint::rule::Rule;

pub mod bank_conflict;

/// Every rule, in the order of the table in the README.
pub static ALL: &[&dyn Rule] = &[&bank_conflict::BankConflict];
