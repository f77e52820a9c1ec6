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
    /// The last number that the store has published, by its last answer: it bounds what a message says of itself.
    counted: u64,
    /// The largest number beyond a gap that the store has not counted yet, and how many arrived there.
    ahead: (u64, u64),
}

impl Arrivals {
    /// This broadcast arrives. Returns how many before it did not, as far as the store has counted: any program may write a number into a
    /// message, so the next answer of the store decides about a larger one.
    pub(super) fn came(&mut self, number: u64) -> u64 {
        let last = self.last.unwrap_or(number.saturating_sub(1));
        let lost = number.saturating_sub(last.saturating_add(1));
        if lost > 0 && number > self.counted {
            self.ahead = (self.ahead.0.max(number), self.ahead.1 + 1);
            return 0;
        }
        self.last = Some(last.max(number));
        lost
    }

    /// Whether the broadcast with this number has arrived.
    pub(super) fn has(&self, number: u64) -> bool {
        self.last.is_some_and(|last| last >= number)
    }

    /// The store says at `now` that it has published up to this number, the last `new` of them just now. Returns how many
    /// broadcasts will not arrive any more.
    pub(super) fn published(&mut self, number: u64, new: usize, now: Duration) -> u64 {
        self.counted = number;
        let (ahead, arrived) = std::mem::take(&mut self.ahead);
        let upto = ahead.min(number);
        let mut lost = 0;
        if let Some(last) = self.last.filter(|last| *last < upto) {
            self.last = Some(upto);
            lost = (upto - last).saturating_sub(arrived);
        }
        lost + self.counted_lost(number, new, now)
    }

    fn counted_lost(&mut self, number: u64, new: usize, now: Duration) -> u64 {
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
        assert_eq!((arrivals.came(6), arrivals.came(9), arrivals.came(10)), (0, 0, 0), "the store has counted 7");
        assert_eq!(arrivals.published(12, 0, secs(1)), 2, "7 and 8");
        assert!(arrivals.has(10) && !arrivals.has(11));
        assert_eq!(arrivals.came(12), 1, "11");
    }

    #[test]
    fn a_number_that_the_store_has_not_counted_is_not_believed() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.published(7, 0, secs(0)), 0);
        assert_eq!((arrivals.came(u64::MAX), arrivals.came(u64::MAX), arrivals.came(8)), (0, 0, 0));
        assert_eq!((arrivals.has(8), arrivals.has(9)), (true, false));
        assert_eq!(
            arrivals.published(9, 0, secs(1)),
            0,
            "two arrived beyond the gap, so no more than 9 are known to be lost"
        );
        assert_eq!(arrivals.came(10), 0);
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
        assert_eq!((arrivals.came(3), arrivals.came(5)), (0, 0));
        assert_eq!(arrivals.published(5, 0, secs(21)), 1);
    }
}
