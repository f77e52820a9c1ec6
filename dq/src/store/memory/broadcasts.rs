//! The waiting broadcasts of a topic, which are separate from its jobs (rule 24).

use std::collections::HashMap;

use foldhash::fast::FixedState;

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

    /// Removes and returns broadcasts that are due, earliest first: up to `limit`, with records of up to `bytes` together.
    /// The first one goes in any case.
    pub(super) fn take(&mut self, now: Timestamp, limit: usize, bytes: usize) -> Vec<(Timestamp, JobId, Record)> {
        let (mut taken, mut size) = (Vec::new(), 0);
        while taken.len() < limit {
            let Some((due, id)) = self.by_due.first().filter(|(due, _)| *due <= now).cloned() else { break };
            size += self.records[&id].1.as_bytes().len();
            if size > bytes && !taken.is_empty() {
                break;
            }
            let record = self.remove(&id).expect("a waiting broadcast has a record");
            taken.push((due, id, record));
        }
        taken
    }
}
