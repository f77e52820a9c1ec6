//! The ids of a place in order of time, apart by the priority of their jobs: a claim compares only their heads.

use std::time::Duration;

use super::super::time_index::TimeIndex;
use crate::job::{JobId, Priority};
use crate::time::Timestamp;

/// The index of a place. In time order the parts are one; only [`pop_due`](Self::pop_due) distinguishes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceIndex([TimeIndex; Priority::ALL.len()]);

impl PlaceIndex {
    pub(super) fn insert(&mut self, priority: Priority, at: Timestamp, id: JobId) {
        self.0[priority as usize].insert(at, id);
    }

    pub(super) fn remove(&mut self, priority: Priority, at: Timestamp, id: &JobId) {
        self.0[priority as usize].remove(at, id);
    }

    /// Removes and returns the id that goes first of those at `until` or earlier, with its priority and its time: the one whose
    /// time, shifted by its priority, is the earliest.
    pub(super) fn pop_due(&mut self, until: Timestamp, ageing: Duration) -> Option<(Priority, Timestamp, JobId)> {
        let shifted = |priority: Priority| {
            let head = self.0[priority as usize].head().filter(|head| *head <= until)?;
            Some((head.after(priority.shift(ageing)), priority))
        };
        let (_, priority) = Priority::ALL.into_iter().filter_map(shifted).min()?;
        let (at, id) = self.0[priority as usize].pop_due(until)?;
        Some((priority, at, id))
    }

    /// Whether the index has this id at this time.
    pub(super) fn contains(&self, priority: Priority, at: Timestamp, id: &JobId) -> bool {
        self.0[priority as usize].contains(at, id)
    }

    /// The earliest time.
    pub(crate) fn head(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(TimeIndex::head).min()
    }

    /// The earliest id and its time.
    pub(crate) fn first(&self) -> Option<&(Timestamp, JobId)> {
        self.0.iter().filter_map(TimeIndex::first).min()
    }

    /// Whether the head is at `until` or earlier.
    pub(crate) fn is_due(&self, until: Timestamp) -> bool {
        self.0.iter().any(|part| part.is_due(until))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(TimeIndex::len).sum()
    }

    /// The number of ids at `until` or earlier. O(leaves of them).
    pub(crate) fn count_due(&self, until: Timestamp) -> usize {
        self.due_by_priority(until).iter().sum()
    }

    /// The same, by priority.
    pub(crate) fn due_by_priority(&self, until: Timestamp) -> [usize; Priority::ALL.len()] {
        self.0.each_ref().map(|part| part.count_due(until))
    }

    /// The number of ids from `from` on and before `to`. O(leaves of them).
    pub(crate) fn count_between(&self, from: Timestamp, to: Timestamp) -> usize {
        self.0.iter().map(|part| part.count_between(from, to)).sum()
    }

    /// The ids after this one, in order.
    pub(crate) fn after(&self, after: Option<(Timestamp, JobId)>) -> impl Iterator<Item = &(Timestamp, JobId)> {
        let [high, normal, low] = &self.0;
        let parts = [high.after(after.clone()), normal.after(after.clone()), low.after(after)];
        let mut parts = parts.map(Iterator::peekable);
        std::iter::from_fn(move || {
            let heads = parts.iter_mut().enumerate().filter_map(|(n, part)| Some((*part.peek()?, n)));
            let (_, first) = heads.min()?;
            parts[first].next()
        })
    }
}
