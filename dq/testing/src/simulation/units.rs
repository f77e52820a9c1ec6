//! Units of simulated time, and the time at which every run starts.

pub(super) const MS: u64 = 1_000;
pub(super) const SECOND: u64 = 1_000_000;

/// What every clock shows at the start, in µs since the Unix epoch: not a whole millisecond.
pub(super) const START: u64 = 1_700_000_000_000_000 + 417;
