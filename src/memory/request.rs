//! What a request costs, and sums over requests.

use std::ops::AddAssign;

use super::Lanes;

/// The work of one request, in the unit of its memory space: sectors (global, local), wavefronts (shared) or
/// distinct words (constant).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Cost {
    /// Units the hardware works through.
    pub units: u32,
    /// Units that the same bytes need at the best addresses; never more than `units`.
    pub ideal: u32,
}

impl Cost {
    /// Units above the ideal.
    pub fn excess(self) -> u32 {
        self.units.saturating_sub(self.ideal)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.units = self.units.saturating_add(other.units);
        self.ideal = self.ideal.saturating_add(other.ideal);
    }
}

/// The fewest units of `unit_bytes` that the bytes of all active lanes fill, if no two lanes share a byte.
pub(super) fn units_filled(lanes: &Lanes, width_bytes: u32, unit_bytes: u32) -> u32 {
    let bytes = u64::from(lanes.count()) * u64::from(width_bytes);
    u32::try_from(bytes.div_ceil(u64::from(unit_bytes.max(1)))).unwrap_or(u32::MAX)
}

/// Costs summed over requests. A request of no active lane counts as a request without units, as in the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Tally {
    pub requests: u64,
    pub units: u64,
    pub ideal: u64,
}

impl Tally {
    pub fn add(&mut self, cost: Cost) {
        self.add_times(cost, 1);
    }

    /// Adds a request that is executed `times` times.
    pub fn add_times(&mut self, cost: Cost, times: u64) {
        self.requests = self.requests.saturating_add(times);
        self.units = self.units.saturating_add(u64::from(cost.units).saturating_mul(times));
        self.ideal = self.ideal.saturating_add(u64::from(cost.ideal).saturating_mul(times));
    }

    /// Units above the ideal.
    pub fn excess(&self) -> u64 {
        self.units.saturating_sub(self.ideal)
    }

    /// Mean units per request; `None` without requests.
    pub fn mean_units(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.units as f64 / self.requests as f64)
    }

    /// Mean ideal units per request; `None` without requests.
    pub fn mean_ideal(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.ideal as f64 / self.requests as f64)
    }

    /// Units over ideal units, for shared memory the conflict degree: 1 is the best, `None` if nothing was moved.
    pub fn degree(&self) -> Option<f64> {
        (self.ideal > 0).then(|| self.units as f64 / self.ideal as f64)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.requests = self.requests.saturating_add(other.requests);
        self.units = self.units.saturating_add(other.units);
        self.ideal = self.ideal.saturating_add(other.ideal);
    }
}
