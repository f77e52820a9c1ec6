//! A store that is looked at after every step, and a memory store whose changes make a second one.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dq::environment::StoreClock;
use dq::job::{Fence, NodeId, ProducerId, TopicKey};
use dq::store::memory::{MemoryStore, PageSize, Position, Replay, ReplayPart, Sink};
use dq::store::{Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Signals, Store, StoreError};
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
    /// The changes of all steps, one after another.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().iter().flat_map(|(_, changes)| changes.clone()).collect()
    }

    /// Applies the changes behind the first `from`, and returns how many there are.
    ///
    /// # Panics
    /// If one cannot be applied.
    pub fn replay_into(&self, store: &MemoryStore, from: usize) -> usize {
        let all = self.0.lock().unwrap();
        for (topic, changes) in &all[from..] {
            store.replay(topic, changes, Replay::Strict, ReplayPart::WHOLE).unwrap();
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

/// A store that is looked at each time its jobs are counted, as the model test does after every step.
pub struct Watched {
    store: Arc<dyn Store>,
    look: Box<dyn Fn(&TopicKey) + Send + Sync>,
}

impl Watched {
    /// Looks at this store.
    pub fn new(store: Arc<dyn Store>, look: impl Fn(&TopicKey) + Send + Sync + 'static) -> Self {
        Self { store, look: Box::new(look) }
    }

    /// A journaled memory store that is compared with what its changes make of another one.
    pub(crate) fn journaled(clock: Arc<dyn StoreClock>) -> Self {
        let (changes, replayed) = (Arc::<Changes>::default(), AtomicUsize::new(0));
        let (store, copy) = (MemoryStore::journaled(clock.clone(), changes.clone()), MemoryStore::new(clock));
        Self::new(Arc::new(store.clone()), move |topic| {
            replayed.store(changes.replay_into(&copy, replayed.load(Ordering::Relaxed)), Ordering::Relaxed);
            assert_eq!(dump(&store, topic), dump(&copy, topic), "replaying the changes gives another topic");
        })
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Store for Watched {
    fn url(&self) -> String {
        self.store.url()
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        if let Query::Counts { topic } = query {
            (self.look)(topic);
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
