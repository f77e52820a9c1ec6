//! Copies of a store, so that a simulation can make it fall back to an earlier state, as after a failover to a replica that
//! lags.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::MemoryStore;
use super::cell::Cell;
use super::topic::Topic;
use crate::job::TopicKey;
use crate::store::StoreError;

/// A copy of everything that a [`MemoryStore`] keeps, except its clock and its subscribers.
#[derive(Debug, Clone)]
pub struct Snapshot(BTreeMap<TopicKey, Topic>);

impl MemoryStore {
    /// Copies what the store keeps now. O(jobs); payloads are shared, not copied.
    ///
    /// # Errors
    /// [`StoreError::Other`] if a topic is stopped because one of its steps panicked.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let copy =
            |(key, cell): (_, Arc<Cell>)| cell.query("snapshot", |topic, _| topic.clone()).map(|topic| (key, topic));
        self.topics.all().into_iter().map(copy).collect::<Result<_, _>>().map(Snapshot)
    }

    /// Puts every topic back to what it was; open links stay open. Not for a store with a sink, which would not learn of it. Topics that are younger than the snapshot become empty.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut topics = snapshot.0.clone();
        for (key, cell) in self.topics.all() {
            let old = topics.remove(&key).unwrap_or_default();
            cell.with("restore", |topic| *topic = Topic { memory: topic.memory.clone(), ..old })?;
        }
        Ok(())
    }
}
