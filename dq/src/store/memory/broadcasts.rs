//! The waiting broadcasts of a topic, which are separate from its jobs, and the step `publish` (rule 24).

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::now::Now;
use super::signals::Recipient;
use super::time_index::TimeIndex;
use super::topic::{Topic, within};
use crate::job::{JobId, NodeId, Record};
use crate::store::step::{Publish, Published};
use crate::store::{BroadcastMessage, StoreError};
use crate::time::Timestamp;

/// The waiting broadcasts of a topic: their records by id, and their ids in order of due time.
#[derive(Debug, Clone, Default)]
pub(super) struct Broadcasts {
    records: HashMap<JobId, (Timestamp, Record), FixedState>,
    by_due: TimeIndex,
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

    /// Removes and returns up to `limit` broadcasts that are due, earliest first.
    pub(super) fn take(&mut self, now: Timestamp, limit: usize) -> Vec<(Timestamp, JobId, Record)> {
        let due = self.by_due.take(now, limit).into_iter();
        due.map(|(due, id)| {
            let (_, record) = self.records.remove(&id).expect("a waiting broadcast has a record");
            (due, id, record)
        })
        .collect()
    }
}

impl Topic {
    /// Adds a broadcast with an unknown id; signals the publisher if it is due before all others.
    pub(super) fn delay_broadcast(&mut self, now: Now, id: JobId, record: Record, due: Timestamp) {
        if self.broadcasts.head().is_none_or(|head| due < head) {
            let to = self.roles.publisher(now).map_or(Recipient::Nodes, |node| Recipient::Node(node.clone()));
            self.notices.broadcast_due(to);
        }
        self.broadcasts.insert(id, record, due);
    }

    /// Removes and publishes due broadcasts; drops those that have expired. O(limit log n).
    pub(crate) fn publish(&mut self, now: Now, node: &NodeId, request: Publish) -> Result<Published, StoreError> {
        within("the limit of a publish", request.limit)?;
        let (mut published, mut dropped) = (0, 0);
        for (due, id, record) in self.broadcasts.take(now.floor(), request.limit) {
            let expires_at = record.fixed().expires_at.unwrap_or_else(|| due.after(request.expires_after));
            if expires_at < now.floor() {
                dropped += 1;
            } else {
                published += 1;
                self.notices.broadcast(BroadcastMessage { id, record: record.as_bytes().clone() });
            }
        }
        let wake_at = self.roles.assign_publisher(node, now, self.broadcasts.head(), now.after(request.fallback));
        Ok(Published {
            published,
            dropped,
            sleep: now.until(wake_at).min(request.fallback),
            more: self.broadcasts.is_due(now.floor()),
        })
    }
}
