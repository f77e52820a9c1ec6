//! A memory store whose changes make a second one, which must be the same at every look.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dq::environment::StoreClock;
use dq::job::{Fence, NodeId, ProducerId, TopicKey};
use dq::store::memory::{MemoryStore, PageSize, Position, Replay, Sink};
use dq::store::{Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Signals, Store, StoreError};
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;
use futures_util::future::BoxFuture;

/// Keeps the changes of all steps, and confirms them at once.
#[derive(Debug, Default)]
pub struct Changes(Mutex<Vec<(TopicKey, Vec<u8>)>>);

impl Sink for Changes {
    fn admit(&self, _operation: &'static str) -> Result<(), StoreError> {
        Ok(())
    }

    fn append(&self, topic: &TopicKey, changes: &[u8], _fence: Fence) -> Position {
        let mut all = self.0.lock().unwrap();
        all.push((topic.clone(), changes.to_vec()));
        Position(all.len() as u64)
    }

    fn confirm(&self, _operation: &'static str, _position: Position) -> Option<Pending<()>> {
        None
    }

    fn confirm_fence(&self, _operation: &'static str, _fence: Fence) -> Option<Pending<()>> {
        None
    }
}

impl Changes {
    /// Applies the changes behind the first `from`, and returns how many there are.
    ///
    /// # Panics
    /// If one cannot be applied.
    pub fn replay_into(&self, store: &MemoryStore, from: usize) -> usize {
        let all = self.0.lock().unwrap();
        for (topic, changes) in &all[from..] {
            store.replay(topic, changes, Replay::Strict).unwrap();
        }
        all.len()
    }
}

/// Everything that a journal keeps of a topic.
fn dump(store: &MemoryStore, topic: &TopicKey) -> Vec<u8> {
    let mut pages = Vec::new();
    let mut cursor = store.begin_dump(topic).unwrap();
    while !store.dump(topic, &mut cursor, PageSize { rows: 7, bytes: usize::MAX }, &mut pages).unwrap() {}
    pages
}

/// A journaled memory store with a manual clock. Each time its jobs are counted, it compares itself with its copy.
#[derive(Debug)]
pub struct JournaledFixture {
    clock: Arc<ManualClock>,
    store: Arc<Compared>,
}

#[derive(Debug)]
struct Compared {
    store: MemoryStore,
    changes: Arc<Changes>,
    copy: MemoryStore,
    replayed: AtomicUsize,
}

impl JournaledFixture {
    /// A new store.
    pub fn empty() -> Self {
        let clock = Arc::new(ManualClock::at(0));
        let changes = Arc::<Changes>::default();
        let store = MemoryStore::journaled(clock.clone(), changes.clone());
        let copy = MemoryStore::new(clock.clone());
        Self { store: Arc::new(Compared { store, changes, copy, replayed: AtomicUsize::new(0) }), clock }
    }
}

impl StoreFixture for JournaledFixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> BoxFuture<'_, ()> {
        self.clock.set(micros);
        Box::pin(async {})
    }
}

impl Store for Compared {
    fn url(&self) -> String {
        self.store.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        if let Query::Counts { topic } = query {
            let replayed = self.changes.replay_into(&self.copy, self.replayed.load(Ordering::Relaxed));
            self.replayed.store(replayed, Ordering::Relaxed);
            assert_eq!(dump(&self.store, topic), dump(&self.copy, topic), "replaying the changes gives another topic");
        }
        self.store.ask(query)
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.store.link_with(topic, node, options)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.store.producer(topic, producer)
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.store.signals(topic, interest)
    }
}
