//! Rules, findings, fixes, suppression, baseline and configuration.

pub mod finding;
pub mod fingerprint;
