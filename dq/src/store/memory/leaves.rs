//! How many ids of an index are in each of its leaves, so that a count walks over leaves and not over ids.
//!
//! A leaf has the ids from its bound up to the bound of the next one, as on Redis; here it is only their number. A full leaf is
//! split in halves, and an empty one goes. A count is exact: it walks over the ids of the two leaves in which its span begins and ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::job::JobId;
use crate::time::Timestamp;

/// A time and an id.
pub(super) type At = (Timestamp, JobId);

/// A leaf of this many ids is split.
const LONGEST: usize = 256;

/// The leaves of an index.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaves {
    /// How many ids are before the first bound. It is zero only if there is no id.
    first: usize,
    /// The bounds, each with the number of ids from there up to the next one; none is zero.
    rest: BTreeMap<At, usize>,
}

impl Leaves {
    /// Counts an id that has just come to `ids`. O(log leaves).
    pub(super) fn add(&mut self, ids: &BTreeSet<At>, new: &At) {
        let leaf = self.rest.range_mut::<At, _>((Bound::Unbounded, Bound::Included(new))).next_back();
        let (from, count) =
            leaf.map_or((Bound::Unbounded, &mut self.first), |(bound, count)| (Bound::Included(bound), count));
        *count += 1;
        if *count < LONGEST {
            return;
        }
        if let Some(middle) = ids.range::<At, _>((from, Bound::Unbounded)).nth(LONGEST / 2).cloned() {
            *count = LONGEST / 2;
            self.rest.insert(middle, LONGEST - LONGEST / 2);
        }
    }

    /// Counts out an id. O(log leaves), and O(1) for one of the first leaf.
    pub(super) fn remove(&mut self, old: &At) {
        match self.rest.range_mut::<At, _>((Bound::Unbounded, Bound::Included(old))).next_back() {
            Some((_, count)) if *count > 1 => *count -= 1,
            Some((bound, _)) => {
                let bound = bound.clone();
                self.rest.remove(&bound);
            }
            None => self.remove_first(),
        }
    }

    /// Counts out the earliest id. O(1), nearly always.
    pub(super) fn remove_first(&mut self) {
        self.first = self.first.saturating_sub(1);
        if self.first == 0 {
            self.first = self.rest.pop_first().map_or(0, |(_, count)| count);
        }
    }

    /// How many of `ids` are in a span. O(leaves of the span).
    pub(super) fn count(&self, ids: &BTreeSet<At>, span: (Bound<&At>, Bound<&At>)) -> usize {
        let mut bounds = self.rest.range::<At, _>(span);
        let Some((last, last_count)) = bounds.next_back() else { return ids.range::<At, _>(span).count() };
        let first = bounds.clone().next().map_or(last, |(bound, _)| bound);
        let whole: usize = bounds.map(|(_, count)| count).sum();
        let behind = match span.1 {
            Bound::Unbounded => *last_count,
            end => ids.range::<At, _>((Bound::Included(last), end)).count(),
        };
        ids.range::<At, _>((span.0, Bound::Excluded(first))).count() + whole + behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> At {
        (Timestamp::from_millis(n / 3), JobId::new(format!("{n:09}")).unwrap())
    }

    /// Numbers that jump about, and none of them twice.
    fn numbers(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|n| n * 7_919 % 10_007)
    }

    #[test]
    fn counts_are_those_of_the_ids_whatever_came_and_went() {
        let (mut ids, mut leaves) = (BTreeSet::new(), Leaves::default());
        let agree = |ids: &BTreeSet<At>, leaves: &Leaves| {
            for (from, to) in [(0, 20_000), (0, 1), (17, 18), (100, 9_000), (5_000, 5_300), (9_999, 10_050)] {
                let (from, to) = (at(from), at(to));
                let span = (Bound::Included(&from), Bound::Excluded(&to));
                assert_eq!(leaves.count(ids, span), ids.range::<At, _>(span).count(), "{from:?} to {to:?}");
            }
            assert_eq!(leaves.count(ids, (Bound::Unbounded, Bound::Unbounded)), ids.len());
            assert_eq!(leaves.first + leaves.rest.values().sum::<usize>(), ids.len());
            assert!(leaves.rest.values().chain([&leaves.first]).all(|count| *count < LONGEST), "{leaves:?}");
        };
        for n in numbers(10_000) {
            ids.insert(at(n));
            leaves.add(&ids, &at(n));
        }
        assert!((40..160).contains(&leaves.rest.len()), "{} leaves", leaves.rest.len());
        agree(&ids, &leaves);
        for n in numbers(8_000) {
            ids.remove(&at(n));
            leaves.remove(&at(n));
        }
        agree(&ids, &leaves);
        while ids.pop_first().is_some() {
            leaves.remove_first();
            assert_eq!(leaves.first == 0, ids.is_empty(), "the first leaf has ids while there are any");
        }
        assert!(leaves.rest.is_empty());
        agree(&ids, &leaves);
    }
}
