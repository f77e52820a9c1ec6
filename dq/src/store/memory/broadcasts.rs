//! The waiting broadcasts of a topic, which are separate from its jobs (rule 24).

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::places::fitting;
use super::time_index::TimeIndex;
use crate::job::{JobId, Record};
use crate::time::Timestamp;

/// The waiting broadcasts of a topic: their records by id, and their ids in order of due time.
#[derive(Debug, Clone, Default)]
pub(super) struct Broadcasts {
    records: HashMap<JobId, (Timestamp, Record), FixedState>,
    by_due: TimeIndex,
    /// How many broadcasts were published so far.
    pub(super) published: u64,
}

impl Broadcasts {
    pub(super) fn contains(&self, id: &JobId) -> bool {
        !self.records.is_empty() && self.records.contains_key(id)
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&(Timestamp, Record)> {
        self.records.get(id)
    }

    /// All broadcasts, in no order.
    #[cfg(feature = "testing")]
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
        self.by_due.remove(due, id);
        Some(record)
    }

    pub(super) fn insert(&mut self, id: JobId, record: Record, due: Timestamp) {
        self.by_due.insert(due, id.clone());
        self.records.insert(id, (due, record));
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.by_due.is_due(now)
    }

    /// Removes and returns up to `limit` broadcasts that are due, with up to `bytes` of records, earliest first.
    pub(super) fn take(&mut self, now: Timestamp, limit: usize, bytes: usize) -> Vec<(Timestamp, JobId, Record)> {
        let size = |id| self.records.get(id).map_or(0, |(_, record)| record.as_bytes().len());
        let count = fitting(self.by_due.until(now).take(limit).map(size), bytes);
        let due = self.by_due.take(now, count).into_iter();
        due.map(|(due, id)| {
            let (_, record) = self.records.remove(&id).expect("a waiting broadcast has a record");
            (due, id, record)
        })
        .collect()
    }
}
