//! Which broadcasts of a channel have arrived, by their numbers (rule 24): the publishing node waits for its own, and what
//! does not arrive is counted.

use std::time::Duration;

/// How long a broadcast may take from its publication to its arrival before it counts as missed.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// What has arrived of a channel.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The last number that arrived or was counted as missed. `None` until the store has said what was published before.
    last: Option<u64>,
    /// The last number that was published by some time, if it has not arrived.
    awaited: Option<(u64, Duration)>,
}

impl Arrivals {
    /// This broadcast arrives. Returns how many before it did not.
    pub(super) fn came(&mut self, number: u64) -> u64 {
        let last = self.last.unwrap_or(number - number.min(1));
        self.last = Some(last.max(number));
        number.saturating_sub(last.saturating_add(1))
    }

    /// Whether the broadcast with this number has arrived.
    pub(super) fn has(&self, number: u64) -> bool {
        self.last.is_some_and(|last| last >= number)
    }

    /// The store says at `now` that it has published up to this number, the last `new` of them just now. Returns how many
    /// broadcasts will not arrive any more.
    pub(super) fn published(&mut self, number: u64, new: usize, now: Duration) -> u64 {
        let Some(last) = self.last.filter(|last| *last <= number) else {
            // This node has just subscribed, or the store fell back and counts again from an earlier number.
            self.last = Some(number.saturating_sub(new as u64));
            self.awaited = Some((number, now));
            return 0;
        };
        let (awaited, since) = *self.awaited.get_or_insert((number, now));
        if last < awaited && now < since + ARRIVES_WITHIN {
            return 0;
        }
        self.awaited = Some((number, now));
        self.last = Some(last.max(awaited));
        awaited.saturating_sub(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_gap_between_two_arrivals_is_counted() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.published(7, 2, secs(0)), 0, "5 were published before this node subscribed");
        assert_eq!((arrivals.came(6), arrivals.came(9), arrivals.came(10)), (0, 2, 0));
        assert!(arrivals.has(10) && !arrivals.has(11));
    }

    #[test]
    fn a_node_that_has_just_subscribed_has_missed_nothing() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.came(40), arrivals.came(41)), (0, 0));
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.published(40, 0, secs(0)), 0);
        assert_eq!((arrivals.came(39), arrivals.came(41)), (0, 0), "39 was published while it subscribed");
    }

    #[test]
    fn what_never_arrives_is_counted_once_after_a_while() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.published(0, 0, secs(0)), 0);
        assert_eq!(arrivals.published(30, 30, secs(1)), 0);
        assert_eq!(arrivals.came(10), 9);
        assert_eq!(arrivals.published(30, 0, secs(2)), 0);
        assert_eq!(arrivals.published(30, 0, secs(10)), 0, "the last 20 may still be on their way");
        assert_eq!(arrivals.published(31, 1, secs(12)), 20);
        assert_eq!(arrivals.came(31), 0);
        assert_eq!(arrivals.published(31, 0, secs(40)), 0);
    }

    #[test]
    fn the_largest_number_that_a_store_may_name_is_a_number_like_any_other() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.came(u64::MAX), arrivals.came(u64::MAX)), (0, 0));
        assert_eq!(arrivals.published(u64::MAX, 1, secs(0)), 0);
        assert!(arrivals.has(u64::MAX));
    }

    #[test]
    fn numbers_start_again_when_the_store_falls_back() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.published(90, 0, secs(0)), 0);
        assert_eq!(arrivals.published(3, 1, secs(20)), 0);
        assert_eq!((arrivals.came(3), arrivals.came(5)), (0, 1));
    }
}
