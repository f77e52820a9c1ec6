//! The ids of a place in order of time, apart by the priority of their jobs: a claim compares only their heads, and never looks at the
//! blocked ones.

use std::time::Duration;

use super::super::time_index::TimeIndex;
use crate::job::{JobId, Priority};
use crate::time::Timestamp;

/// The index of a place. In time order the parts are one; only what concerns claims distinguishes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceIndex {
    parts: [TimeIndex; 2 * OPEN],
    /// The schedules among these ids, once more.
    ticks: TimeIndex,
}

/// How many parts claims look at: one for each priority. The others have the blocked jobs of these.
const OPEN: usize = Priority::ALL.len();

/// The part of an index in which a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexPart(usize);

impl IndexPart {
    pub(super) const fn of(priority: Priority, is_blocked: bool) -> Self {
        Self(priority as usize + if is_blocked { OPEN } else { 0 })
    }
}

impl PlaceIndex {
    pub(super) fn insert(&mut self, part: IndexPart, at: Timestamp, id: JobId) {
        if id.schedule_name().is_some() {
            self.ticks.insert(at, id.clone());
        }
        self.parts[part.0].insert(at, id);
    }

    pub(super) fn remove(&mut self, part: IndexPart, at: Timestamp, id: &JobId) {
        if id.schedule_name().is_some() {
            self.ticks.remove(at, id);
        }
        self.parts[part.0].remove(at, id);
    }

    /// Which priority goes first at `until`: the one whose earliest time, shifted by the priority, is the earliest; and that time.
    pub(super) fn next_due(&self, until: Timestamp, ageing: Duration) -> Option<(Timestamp, Priority)> {
        let shifted = |priority: Priority| {
            let head = self.parts[priority as usize].head().filter(|head| *head <= until)?;
            Some((head.after(priority.shift(ageing)), priority))
        };
        Priority::ALL.into_iter().filter_map(shifted).min()
    }

    /// Removes and returns the id that goes first of those at `until` or earlier, with its part and its time.
    pub(super) fn pop_due(&mut self, until: Timestamp, ageing: Duration) -> Option<(IndexPart, Timestamp, JobId)> {
        let (_, priority) = self.next_due(until, ageing)?;
        let (at, id) = self.parts[priority as usize].pop_due(until)?;
        if id.schedule_name().is_some() {
            self.ticks.remove(at, &id);
        }
        Some((IndexPart::of(priority, false), at, id))
    }

    /// The earliest schedule and its time.
    pub(super) fn first_tick(&self) -> Option<&(Timestamp, JobId)> {
        self.ticks.first()
    }

    /// Whether a job has another priority than the normal one.
    pub(super) fn has_priorities(&self) -> bool {
        let is_used = |priority: Priority| {
            [false, true].map(|is_blocked| self.parts[IndexPart::of(priority, is_blocked).0].len())
        };
        [Priority::High, Priority::Low].into_iter().flat_map(is_used).any(|count| count > 0)
    }

    /// Whether the index has this id at this time.
    pub(super) fn contains(&self, part: IndexPart, at: Timestamp, id: &JobId) -> bool {
        self.parts[part.0].contains(at, id)
    }

    /// The earliest time at which a job may be claimed.
    pub(crate) fn head(&self) -> Option<Timestamp> {
        self.parts[..OPEN].iter().filter_map(TimeIndex::head).min()
    }

    /// The earliest id and its time.
    pub(crate) fn first(&self) -> Option<&(Timestamp, JobId)> {
        self.parts.iter().filter_map(TimeIndex::first).min()
    }

    /// Whether the head is at `until` or earlier.
    pub(crate) fn is_due(&self, until: Timestamp) -> bool {
        self.parts[..OPEN].iter().any(|part| part.is_due(until))
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(TimeIndex::len).sum()
    }

    /// The number of ids at `until` or earlier. O(leaves of them).
    pub(crate) fn count_due(&self, until: Timestamp) -> usize {
        self.due_by_priority(until).iter().sum()
    }

    /// The same, by priority.
    pub(crate) fn due_by_priority(&self, until: Timestamp) -> [usize; Priority::ALL.len()] {
        Priority::ALL.map(|priority| {
            let parts = [false, true].map(|is_blocked| &self.parts[IndexPart::of(priority, is_blocked).0]);
            parts.iter().map(|part| part.count_due(until)).sum()
        })
    }

    /// How many of them are blocked.
    pub(crate) fn blocked_due(&self, until: Timestamp) -> usize {
        self.parts[OPEN..].iter().map(|part| part.count_due(until)).sum()
    }

    /// The number of ids from `from` on and before `to`. O(leaves of them).
    pub(crate) fn count_between(&self, from: Timestamp, to: Timestamp) -> usize {
        self.parts.iter().map(|part| part.count_between(from, to)).sum()
    }

    /// The ids after this one, in order.
    pub(crate) fn after(&self, after: Option<(Timestamp, JobId)>) -> impl Iterator<Item = &(Timestamp, JobId)> {
        let mut parts = self.parts.each_ref().map(move |part| part.after(after.clone()).peekable());
        std::iter::from_fn(move || {
            let heads = parts.iter_mut().enumerate().filter_map(|(n, part)| Some((*part.peek()?, n)));
            let (_, first) = heads.min()?;
            parts[first].next()
        })
    }
}
