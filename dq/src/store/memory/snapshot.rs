//! Copies of a store to come back to: what a failover to a replica that lagged does to its clients, for simulations.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::MemoryStore;
use super::topic::Topic;
use crate::job::TopicKey;
use crate::store::StoreError;

/// A copy of everything a [`MemoryStore`] keeps, except its clock and who hears its signals.
#[derive(Debug, Clone)]
pub struct Snapshot(BTreeMap<TopicKey, Topic>);

impl MemoryStore {
    /// A copy of what the store keeps now. O(jobs); payloads are shared, not copied.
    ///
    /// # Errors
    /// [`StoreError::Other`] when a topic is stopped because a step of it panicked.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let cells: Vec<_> = self.topics.lock().iter().map(|(key, cell)| (key.clone(), Arc::clone(cell))).collect();
        let copy = |(key, cell): (_, Arc<super::Cell>)| {
            cell.query("snapshot", |topic, _| Ok(topic.clone())).map(|topic| (key, topic))
        };
        cells.into_iter().map(copy).collect::<Result<_, _>>().map(Snapshot)
    }

    /// Puts every topic back to what it was, under the links that are open. Topics that are younger are empty then.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut topics = snapshot.0.clone();
        let cells: Vec<_> = self.topics.lock().iter().map(|(key, cell)| (key.clone(), Arc::clone(cell))).collect();
        for (key, cell) in cells {
            let old = topics.remove(&key).unwrap_or_default();
            cell.step("restore", |topic, _| {
                *topic = old;
                Ok(())
            })?;
        }
        Ok(())
    }
}
