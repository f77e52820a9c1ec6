//! What a store counts of a topic: a few numbers a minute, for a day.
//!
//! A store keeps the minutes in a ring of [`MAX_MINUTES`] places. The minute `n` has the place `n mod 1440`, and takes it from the
//! minute of the day before, so the size is bounded and nobody sweeps.

use std::time::Duration;

use crate::time::Timestamp;

/// A minute, in milliseconds.
pub(crate) const MINUTE: u64 = 60_000;

/// How many minutes a store keeps: those of a day.
pub const MAX_MINUTES: u64 = 24 * 60;

/// How many whole minutes behind the present one an overview has.
pub const RECENT_MINUTES: u64 = 5;

/// The bounds of lateness, in milliseconds. A job that is claimed just as late as a bound counts under it; behind the last one is all
/// that is later.
pub const LATENESS_BOUNDS: [u64; 7] = [10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/// The bytes of a minute, as the stores keep it.
#[cfg(feature = "redis")]
const BYTES: usize = 70;

/// What a topic did in a minute of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MinuteCounts {
    /// The minute: whole minutes since the Unix epoch.
    pub minute: u64,
    /// Due jobs that nodes claimed. A job that is given back counts again when it is claimed again.
    pub claimed: u64,
    /// Runs that ended with an outcome of their own. A rollback, a reclaim and a job that expired before it ran are none.
    pub ran: u64,
    /// Of these, acks.
    pub done: u64,
    /// Of these, retries and runs that made their job DEAD.
    pub failed: u64,
    /// Jobs that became DEAD, by an outcome or by the crashes of their nodes.
    pub dead: u64,
    /// How late the claimed jobs were, in sum, in milliseconds: from due to claim.
    pub late_sum: u64,
    /// How late the latest of them was, in milliseconds.
    pub late_most: u64,
    /// How many of them were late up to each of the [`LATENESS_BOUNDS`], and later.
    pub late: [u64; 8],
}

impl MinuteCounts {
    /// Counts jobs that were claimed this late, in milliseconds.
    pub(super) fn claim(&mut self, late: u64, jobs: u64) {
        let bucket = LATENESS_BOUNDS.iter().take_while(|bound| late > **bound).count();
        self.claimed += jobs;
        self.late[bucket] += jobs;
        self.late_sum = self.late_sum.saturating_add(late.saturating_mul(jobs));
        self.late_most = self.late_most.max(late);
    }

    /// The sum of those that were counted from the minute `from` to the minute `to`.
    pub(crate) fn sum<'a>(counted: impl IntoIterator<Item = &'a Self>, from: u64, to: u64) -> Self {
        let mut sum = Self { minute: from, ..Self::default() };
        let within = counted.into_iter().filter(|counts| (from..=to).contains(&counts.minute));
        within.for_each(|counts| sum.add(counts));
        sum
    }

    /// The sum of the present minute and those before it that an overview has.
    pub(super) fn recent<'a>(counted: impl IntoIterator<Item = &'a Self>, now: Timestamp) -> Self {
        let to = now.as_millis() / MINUTE;
        Self::sum(counted, to.saturating_sub(RECENT_MINUTES), to)
    }

    /// Adds what another minute has.
    pub(super) fn add(&mut self, other: &Self) {
        self.claimed += other.claimed;
        self.ran += other.ran;
        self.done += other.done;
        self.failed += other.failed;
        self.dead += other.dead;
        self.late_sum = self.late_sum.saturating_add(other.late_sum);
        self.late_most = self.late_most.max(other.late_most);
        self.late.iter_mut().zip(other.late).for_each(|(sum, jobs)| *sum += jobs);
    }

    /// The mean lateness; `None` if nothing was claimed.
    pub(crate) fn mean_lateness(&self) -> Option<Duration> {
        self.late_sum.checked_div(self.claimed).map(Duration::from_millis)
    }

    /// How late so many of a hundred claimed jobs were at most: a bound, or what the latest job was, if that is less. `None` if
    /// nothing was claimed.
    pub(crate) fn lateness_of(&self, percent: u64) -> Option<Duration> {
        let wanted = (self.claimed * percent).div_ceil(100);
        let mut seen = 0;
        let bucket = self.late.iter().position(|jobs| {
            seen += jobs;
            self.claimed > 0 && seen >= wanted
        })?;
        let bound = LATENESS_BOUNDS.get(bucket).copied().unwrap_or(u64::MAX);
        Some(Duration::from_millis(bound.min(self.late_most)))
    }

    /// Reads what a store keeps; `None` if the bytes are not a minute. Numbers are little-endian: the minute and the first five counts
    /// with 4 bytes, the sum with 8, the latest with 6, and the eight counts of lateness with 4.
    #[cfg(feature = "redis")]
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != BYTES {
            return None;
        }
        let mut left = bytes;
        let mut next = |size: usize| {
            let (number, rest) = left.split_at(size);
            left = rest;
            number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let (minute, claimed, ran, done) = (next(4), next(4), next(4), next(4));
        let (failed, dead, late_sum, late_most) = (next(4), next(4), next(8), next(6));
        let late = std::array::from_fn(|_| next(4));
        Some(Self { minute, claimed, ran, done, failed, dead, late_sum, late_most, late })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_counts_under_the_first_bound_that_holds_it() {
        let mut counts = MinuteCounts::default();
        for (late, jobs) in [(0, 1), (10, 2), (11, 3), (3_600_000, 4), (3_600_001, 5)] {
            counts.claim(late, jobs);
        }
        assert_eq!((counts.claimed, counts.late), (15, [3, 3, 0, 0, 0, 0, 4, 5]));
        assert_eq!((counts.late_most, counts.late_sum), (3_600_001, 20 + 33 + 9 * 3_600_000 + 5));
    }

    #[test]
    fn a_share_of_the_jobs_was_at_most_as_late_as_a_bound_or_the_latest() {
        let mut counts = MinuteCounts::default();
        assert_eq!((counts.lateness_of(50), counts.mean_lateness()), (None, None));
        counts.claim(3, 98);
        assert_eq!(counts.lateness_of(50), Some(Duration::from_millis(3)), "no job was later than that");
        counts.claim(4_000, 2);
        assert_eq!(counts.lateness_of(50), Some(Duration::from_millis(10)));
        assert_eq!(counts.lateness_of(98), Some(Duration::from_millis(10)));
        assert_eq!(counts.lateness_of(99), Some(Duration::from_millis(4_000)));
        assert_eq!(counts.mean_lateness(), Some(Duration::from_millis(82)));
    }

    #[cfg(feature = "redis")]
    #[test]
    fn bytes_of_another_length_are_no_minute() {
        assert_eq!(MinuteCounts::from_bytes(&[0; BYTES]), Some(MinuteCounts::default()));
        assert_eq!(MinuteCounts::from_bytes(&[0; BYTES - 1]), None);
        assert_eq!(MinuteCounts::from_bytes(b"by hand"), None);
    }
}
