//! Rules, findings, fixes, suppression, baseline and configuration.

pub mod finding;

pub mod fingerprint;

pub mod rule;

pub mod place;

pub mod check;

pub mod selection;

pub mod config;

pub mod suppression;

pub mod baseline;

pub mod fix;
