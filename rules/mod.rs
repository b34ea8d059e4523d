//! The rules: a room each, and the list of all of them.

use cudalint::lint::rule::Rule;

/// Every rule, in the order of the table in the README.
pub static ALL: &[&dyn Rule] = &[];
