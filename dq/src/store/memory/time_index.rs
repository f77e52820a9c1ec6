//! Ids in order of time: the index of each place that a job leaves by time, and of the waiting broadcasts.
//!
//! The ids are in leaves. A leaf has the ids from its bound up to the bound of the next one, in no order until it is the first: then it is
//! sorted, once, and its ids leave in order. So an add puts its id behind the others of a leaf, and only the leaf that is reached next
//! costs comparisons. The idea is that of a calendar queue (R. Brown, Communications of the ACM 31, 1988), whose slots are sorted when
//! their day comes. Here a slot is not a span of time but up to [`FULL`] ids, so it needs no width that fits all delays and no overflow for
//! the far ones, it has an exact order, and a clock that jumps back does not disturb it. `docs/internals/architecture.md` has
//! its figures beside an ordered set and a ring of slots of equal width.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crate::job::JobId;
use crate::time::Timestamp;

/// A time and an id.
type At = (Timestamp, JobId);

/// A leaf of this many ids is split in halves, and one that falls to a quarter joins the leaf before it.
pub(super) const FULL: usize = 256;

/// Ids, each with a time, in order of time, then id. A change costs O(log n), and so many comparisons as a leaf has ids if it removes an id
/// that is not among the first.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeIndex {
    /// The earliest ids, in order. There are none only if the index is empty.
    first: VecDeque<At>,
    /// The other leaves, each under its bound. None is empty.
    rest: BTreeMap<At, Vec<At>>,
    len: usize,
}

/// What is before each id at this time, and behind each earlier one.
fn start_of(at: Timestamp) -> Option<At> {
    // No id sorts before a blank, because an id has no control character.
    JobId::new(" ").ok().map(|first| (at, first))
}

impl TimeIndex {
    pub(super) fn insert(&mut self, at: Timestamp, id: JobId) {
        let new = (at, id);
        self.len += 1;
        let Some((_, leaf)) = self.rest.range_mut::<At, _>(..=&new).next_back() else {
            let behind = self.first.partition_point(|known| *known < new);
            self.first.insert(behind, new);
            if self.first.len() == FULL {
                let later = self.first.split_off(FULL / 2);
                self.rest.insert(later[0].clone(), later.into());
            }
            return;
        };
        leaf.push(new);
        if leaf.len() == FULL {
            leaf.select_nth_unstable(FULL / 2);
            let later = leaf.split_off(FULL / 2);
            leaf.shrink_to_fit(); // ids that come in order never fill it again
            self.rest.insert(later[0].clone(), later);
        }
    }

    pub(super) fn remove(&mut self, at: Timestamp, id: &JobId) {
        let old = (at, id.clone());
        let known = match self.rest.range_mut::<At, _>(..=&old).next_back() {
            Some((bound, leaf)) => {
                let known = leaf.iter().position(|known| *known == old).map(|known| leaf.swap_remove(known));
                let sparse = (leaf.len() <= FULL / 4).then(|| bound.clone());
                self.join(sparse);
                known
            }
            None => self.first.binary_search(&old).ok().and_then(|known| self.first.remove(known)),
        };
        debug_assert!(known.is_some(), "the index has {id} at the time of its slot");
        self.len -= usize::from(known.is_some());
        self.reach();
    }

    /// Gives the ids of a leaf to the one before it.
    fn join(&mut self, bound: Option<At>) {
        let ids = bound.and_then(|bound| self.rest.remove(&bound)).unwrap_or_default();
        self.len -= ids.len();
        ids.into_iter().for_each(|(at, id)| self.insert(at, id));
    }

    /// Sorts the next leaf if the first has none left.
    fn reach(&mut self) {
        if self.first.is_empty()
            && let Some((_, mut next)) = self.rest.pop_first()
        {
            next.sort_unstable();
            self.first = next.into();
        }
    }

    /// The earliest time.
    pub(super) fn head(&self) -> Option<Timestamp> {
        self.first().map(|(at, _)| *at)
    }

    /// The earliest id and its time.
    pub(super) fn first(&self) -> Option<&At> {
        self.first.front()
    }

    /// Whether the head is at `until` or earlier.
    pub(super) fn is_due(&self, until: Timestamp) -> bool {
        self.head().is_some_and(|head| head <= until)
    }

    /// The ids at `until` or earlier, earliest first.
    pub(super) fn until(&self, until: Timestamp) -> impl Iterator<Item = &JobId> {
        self.after(None).take_while(move |(at, _)| *at <= until).map(|(_, id)| id)
    }

    /// Removes and returns the earliest id and its time, if that is `until` or earlier.
    pub(super) fn pop_due(&mut self, until: Timestamp) -> Option<At> {
        if !self.is_due(until) {
            return None;
        }
        self.len -= 1;
        let first = self.first.pop_front();
        self.reach();
        first
    }

    /// Whether the index has this id at this time.
    pub(super) fn contains(&self, at: Timestamp, id: &JobId) -> bool {
        let asked = (at, id.clone());
        let leaf = self.rest.range::<At, _>(..=&asked).next_back();
        leaf.map_or_else(|| self.first.contains(&asked), |(_, leaf)| leaf.contains(&asked))
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The number of ids at `until` or earlier. O(leaves of them).
    pub(super) fn count_due(&self, until: Timestamp) -> usize {
        let end = until.as_millis().checked_add(1).map(Timestamp::from_millis);
        self.count(Timestamp::from_millis(0), end)
    }

    /// The number of ids from `from` on and before `to`. O(leaves of them).
    pub(super) fn count_between(&self, from: Timestamp, to: Timestamp) -> usize {
        self.count(from, Some(to))
    }

    /// It looks at the ids of the two leaves in which the span begins and ends; the leaves between are in it as a whole.
    fn count(&self, from: Timestamp, to: Option<Timestamp>) -> usize {
        let is_in = |(at, _): &&At| *at >= from && to.is_none_or(|to| *at < to);
        let (Some(start), end) = (start_of(from), to.and_then(start_of)) else { return 0 };
        if to.is_some_and(|to| to <= from) {
            return 0;
        }
        let begins = self.rest.range::<At, _>(..=&start).next_back();
        let begins = begins
            .map_or_else(|| self.first.iter().filter(is_in).count(), |(_, leaf)| leaf.iter().filter(is_in).count());
        let end = end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut leaves = self.rest.range::<At, _>((Bound::Excluded(&start), end)).map(|(_, leaf)| leaf);
        let ends = leaves.next_back().map_or(0, |leaf| leaf.iter().filter(is_in).count());
        begins + leaves.map(Vec::len).sum::<usize>() + ends
    }

    /// The ids after this one, in order. It sorts a copy of each leaf that it comes to.
    pub(super) fn after(&self, after: Option<At>) -> impl Iterator<Item = &At> {
        let begins = after.as_ref().and_then(|after| self.rest.range::<At, _>(..=after).next_back());
        let from = begins.map_or(Bound::Unbounded, |(bound, _)| Bound::Included(bound));
        let later = self.rest.range::<At, _>((from, Bound::Unbounded)).flat_map(|(_, leaf)| {
            let mut ids: Vec<_> = leaf.iter().collect();
            ids.sort_unstable();
            ids
        });
        self.first.iter().chain(later).filter(move |id| after.as_ref().is_none_or(|after| *id > after))
    }

    /// The number of leaves, and for how many ids they have room.
    #[cfg(test)]
    pub(super) fn leaves(&self) -> (usize, usize) {
        let room = self.rest.values().map(Vec::capacity).sum::<usize>() + self.first.capacity();
        (self.rest.len() + 1, room)
    }
}
