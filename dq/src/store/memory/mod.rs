//! Jobs in the memory of this process: `memory:` and `memory:NAME`.
//!
//! All rules of `PROTOCOL.md` hold here as they do elsewhere, so tests and simulations meet the same store: turns, tokens,
//! marks, numbered calls, leases, roles. The state of a topic and its steps are plain values and methods (`topic`); this
//! module puts a lock and a clock around each topic, and hands out the ways to it.
//!
//! What it does not survive is the end of the process.

mod adds;
mod audit;
mod broadcasts;
mod calls;
mod cell;
mod claims;
mod command;
mod connection;
mod inspect;
mod leave;
mod named;
mod notes;
mod notices;
mod now;
mod pending;
mod places;
mod publish;
mod reclaim;
mod renew;
mod roles;
mod sequences;
mod settle;
#[cfg(any(test, feature = "testing"))]
mod snapshot;
mod subscribers;
mod topic;
#[cfg(feature = "testing")]
#[cfg(feature = "testing")]
mod view;
mod waiting;
mod wake;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use super::{Interest, Link, Page, PageRequest, Producer, Signals, Store, StoreError, Stored, TopicCounts};
use crate::environment::StoreClock;
use crate::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
#[cfg(any(test, feature = "testing"))]
pub use snapshot::Snapshot;
#[cfg(feature = "testing")]
#[cfg(feature = "testing")]
pub use view::{JobView, Row, View};

use cell::Cell;
use connection::{MemoryLink, MemoryProducer};
use now::Now;
use topic::Topic;

/// The most topics that are listed.
const MOST_TOPICS: usize = 10_000;

/// A store in the memory of this process. Cheap to clone; the clones are one store.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    name: Option<Arc<str>>,
    topics: Arc<Topics>,
}

/// All topics of a store.
#[derive(Debug)]
struct Topics {
    clock: Arc<dyn StoreClock>,
    cells: Mutex<BTreeMap<TopicKey, Arc<Cell>>>,
}

impl Topics {
    fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self { clock, cells: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TopicKey, Arc<Cell>>> {
        // One insertion is the only change, so a panic beside it left nothing half-changed.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The topic, which begins to be with its first contact.
    fn cell(&self, topic: &TopicKey) -> Arc<Cell> {
        let mut cells = self.lock();
        if let Some(cell) = cells.get(topic) {
            return Arc::clone(cell);
        }
        let cell = Arc::new(Cell::new(Arc::clone(&self.clock)));
        cells.insert(topic.clone(), Arc::clone(&cell));
        cell
    }
}

impl MemoryStore {
    /// A store of its own, which judges due times and leases by `clock`.
    pub fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self { name: None, topics: Arc::new(Topics::new(clock)) }
    }

    /// The store `name` of this process. It is shared by all who name it, and gone with the last of them; `clock` is for
    /// the first, the others get the clock it has.
    pub fn named(name: &str, clock: Arc<dyn StoreClock>) -> Self {
        Self { name: Some(name.into()), topics: named::shared(name, || Topics::new(clock)) }
    }

    fn known(&self, topic: &TopicKey) -> Option<Arc<Cell>> {
        self.topics.lock().get(topic).map(Arc::clone)
    }
}

impl Store for MemoryStore {
    fn url(&self) -> String {
        format!("memory:{}", self.name.as_deref().unwrap_or_default())
    }

    /// Cannot fail: only this version of dq ever wrote here.
    fn open<'a>(&'a self, _topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        Arc::new(MemoryLink { cell: self.topics.cell(topic), node: node.clone() })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(MemoryProducer { cell: self.topics.cell(topic), producer: producer.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(ready(self.topics.cell(topic).subscribe(interest)))
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        let get = |cell: &Cell| cell.query("get", |topic, _| topic.get(ids));
        Box::pin(ready(self.known(topic).map_or_else(|| Topic::default().get(ids), |cell| get(&cell))))
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        let page = |cell: &Cell| cell.query("page", |topic, _| topic.page(&request));
        Box::pin(ready(self.known(topic).map_or_else(|| Topic::default().page(&request), |cell| page(&cell))))
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        let cells: Vec<_> = self.topics.lock().iter().map(|(key, cell)| (key.clone(), Arc::clone(cell))).collect();
        let mut held = cells.into_iter().filter(|(key, _)| key.app == *app).filter_map(|(key, cell)| {
            let empty = cell.query("topics", |topic, _| Ok(topic.is_empty()));
            empty.map(|empty| (!empty).then_some(key.topic)).transpose()
        });
        Box::pin(ready(held.by_ref().take(MOST_TOPICS).collect()))
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        let counts = |cell: &Cell| cell.query("counts", |topic, now| Ok(topic.counts(now)));
        let none = || Ok(Topic::default().counts(Now::from_micros(self.topics.clock.micros())));
        Box::pin(ready(self.known(topic).map_or_else(none, |cell| counts(&cell))))
    }
}
