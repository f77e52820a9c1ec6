//! The waiting broadcasts of a topic, which are separate from its jobs (rule 24).

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::kept::Touches;
use super::places::{bytes_of_row, fitting};
use super::time_index::TimeIndex;
use crate::job::{JobId, Record};
use crate::time::Timestamp;

/// The waiting broadcasts of a topic: their records by id, and their ids in order of due time.
#[derive(Debug, Clone, Default)]
pub(super) struct Broadcasts {
    records: HashMap<JobId, (Timestamp, Record), FixedState>,
    by_due: TimeIndex,
    /// Those that the step has put or removed.
    pub(super) touched: Touches,
    /// How many broadcasts were published so far.
    pub(super) published: u64,
    /// What they take in memory, about.
    pub(super) bytes: u64,
}

impl Broadcasts {
    pub(super) fn contains(&self, id: &JobId) -> bool {
        !self.records.is_empty() && self.records.contains_key(id)
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&(Timestamp, Record)> {
        self.records.get(id)
    }

    /// All broadcasts, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&JobId, &(Timestamp, Record))> {
        self.records.iter()
    }

    /// The ids in order of due time.
    pub(super) const fn by_due(&self) -> &TimeIndex {
        &self.by_due
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn head(&self) -> Option<Timestamp> {
        self.by_due.head()
    }

    pub(super) fn remove(&mut self, id: &JobId) -> Option<Record> {
        if self.records.is_empty() {
            return None;
        }
        let (due, record) = self.records.remove(id)?;
        self.bytes -= bytes_of_row(id, record.as_bytes().len());
        self.touched.add(|| id.clone());
        self.by_due.remove(due, id);
        Some(record)
    }

    /// Puts a broadcast; it replaces the one that had its id.
    pub(super) fn insert(&mut self, id: JobId, record: Record, due: Timestamp) {
        self.remove(&id);
        self.touched.add(|| id.clone());
        self.by_due.insert(due, id.clone());
        self.bytes += bytes_of_row(&id, record.as_bytes().len());
        self.records.insert(id, (due, record));
    }

    /// A step has panicked between two changes: makes the index again.
    pub(super) fn restore(&mut self) {
        self.by_due = TimeIndex::default();
        self.bytes = 0;
        for (id, (due, record)) in &self.records {
            self.by_due.insert(*due, id.clone());
            self.bytes += bytes_of_row(id, record.as_bytes().len());
        }
    }

    /// Waiting broadcasts after this one, in order of due time, then id.
    pub(super) fn after(
        &self,
        after: Option<(Timestamp, JobId)>,
    ) -> impl Iterator<Item = (&JobId, Timestamp, &Record)> {
        self.by_due.after(after).filter_map(|(due, id)| self.records.get(id).map(|(_, record)| (id, *due, record)))
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.by_due.is_due(now)
    }

    /// Looks at up to `limit` broadcasts that are due, with up to `bytes` of records, earliest first. Removes and returns those
    /// that go.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        limit: usize,
        bytes: usize,
        goes: impl Fn(Timestamp, &Record) -> bool,
    ) -> Vec<(Timestamp, JobId, Record)> {
        let record = |id| self.records.get(id).expect("a waiting broadcast has a record");
        let size = |id| record(id).1.as_bytes().len();
        let count = fitting(self.by_due.until(now).take(limit).map(size), bytes);
        let due = self.by_due.until(now).take(count).map(|id| (id, record(id)));
        let ids: Vec<_> = due.filter(|(_, (due, record))| goes(*due, record)).map(|(id, _)| id.clone()).collect();
        let taken = ids.into_iter().filter_map(|id| {
            let (due, _) = *self.get(&id)?;
            Some((due, id.clone(), self.remove(&id)?))
        });
        taken.collect()
    }
}
