//! Broadcasts wait apart from the queue, and are published and removed in one step (PROTOCOL.md rule 24).

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::notices::To;
use super::now::Now;
use super::topic::{Topic, within};
use super::waiting::Waiting;
use crate::job::{JobId, NodeId, Record};
use crate::store::step::{Cast as Request, Casted};
use crate::store::{Cast, StoreError};
use crate::time::Timestamp;

/// The broadcasts of a topic that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Casts {
    records: HashMap<JobId, (Timestamp, Record), FixedState>,
    by_due: Waiting,
}

impl Casts {
    pub(super) fn contains(&self, id: &JobId) -> bool {
        !self.records.is_empty() && self.records.contains_key(id)
    }

    pub(super) fn get(&self, id: &JobId) -> Option<&(Timestamp, Record)> {
        self.records.get(id)
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

    fn insert(&mut self, id: JobId, record: Record, due: Timestamp) {
        self.by_due.insert(due, id.clone());
        self.records.insert(id, (due, record));
    }
}

impl Topic {
    /// Lets a broadcast wait that is not there.
    pub(super) fn delay_cast(&mut self, now: Now, id: JobId, record: Record, due: Timestamp) {
        if self.casts.head().is_none_or(|head| due < head) {
            let to = self.roles.caster(now).map_or(To::Nodes, |node| To::Node(node.clone()));
            self.notices.cast_due(to);
        }
        self.casts.insert(id, record, due);
    }

    /// Publishes due broadcasts and drops those that nobody served in time. O(limit log n).
    pub(crate) fn cast(&mut self, now: Now, node: &NodeId, request: Request) -> Result<Casted, StoreError> {
        within("the limit of a cast", request.limit)?;
        let (mut published, mut dropped) = (0, 0);
        for (due, id) in self.casts.by_due.take(now.floor(), request.limit) {
            let (_, record) = self.casts.records.remove(&id).expect("what waits has a record");
            let expires_at = record.fixed().expires_at.unwrap_or_else(|| due.after(request.expires_after));
            if expires_at < now.floor() {
                dropped += 1;
            } else {
                published += 1;
                self.notices.cast(Cast { id, record: record.as_bytes().clone() });
            }
        }
        let told = self.roles.tell_caster(node, now, self.casts.head(), now.after(request.fallback));
        Ok(Casted {
            published,
            dropped,
            sleep: now.until(told).min(request.fallback),
            more: self.casts.by_due.is_due(now.floor()),
        })
    }
}
