//! The rules: a room each, and the list of all of them.

use cudalint::lint::rule::Rule;

pub mod uncoalesced_access;

pub mod array_of_structures;

pub mod bank_conflict;

pub mod missing_restrict;

pub mod persisting_l2_not_reset;

pub mod misaligned_access;

pub mod irregular_access;

/// Every rule, in the order of the table in the README.
pub static ALL: &[&dyn Rule] = &[
    &uncoalesced_access::UncoalescedAccess,
    &array_of_structures::ArrayOfStructures,
    &bank_conflict::BankConflict,
    &missing_restrict::MissingRestrict,
    &persisting_l2_not_reset::PersistingL2NotReset,
    &misaligned_access::MisalignedAccess,
    &irregular_access::IrregularAccess,
];
