//! A memory store whose changes make a second one, which must be the same at every look.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dq::environment::StoreClock;
use dq::job::{AppName, Fence, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::memory::{MemoryStore, PageSize, Position, Replay, Sink};
use dq::store::{
    DueCount, Examine, Examined, GiveUp, HistorySetting, Interest, JobHistory, Link, MinuteCounts, NodesPage,
    NodesRequest, Page, PageRequest, Pending, Producer, Signals, Store, StoreError, Stored, TopicCounts, TopicOverview,
    TopicState,
};
use dq::testing::ManualClock;
use dq::time::Timestamp;
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

    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.contact()
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.open(topic)
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        self.store.link(topic, node)
    }

    fn counting_link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        self.store.counting_link(topic, node)
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.store.producer(topic, producer)
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.store.signals(topic, interest)
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        self.store.get(topic, ids)
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.store.page(topic, request)
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        self.store.topics(app)
    }

    fn schedules<'a>(
        &'a self,
        topic: &'a TopicKey,
        after: Option<&'a JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<JobId>, StoreError>> {
        self.store.schedules(topic, after, limit)
    }

    fn keep_history<'a>(
        &'a self,
        topic: &'a TopicKey,
        setting: HistorySetting,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.keep_history(topic, setting)
    }

    fn history<'a>(
        &'a self,
        topic: &'a TopicKey,
        id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<JobHistory>, StoreError>> {
        self.store.history(topic, id)
    }

    fn topic_state<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicState, StoreError>> {
        self.store.topic_state(topic)
    }

    fn overview<'a>(&'a self, topic: &'a TopicKey, nodes: usize) -> BoxFuture<'a, Result<TopicOverview, StoreError>> {
        self.store.overview(topic, nodes)
    }

    fn nodes<'a>(&'a self, topic: &'a TopicKey, request: NodesRequest) -> BoxFuture<'a, Result<NodesPage, StoreError>> {
        self.store.nodes(topic, request)
    }

    fn due_counts<'a>(
        &'a self,
        topic: &'a TopicKey,
        times: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<DueCount>, StoreError>> {
        self.store.due_counts(topic, times)
    }

    fn examine<'a>(&'a self, topic: &'a TopicKey, request: Examine) -> BoxFuture<'a, Result<Examined, StoreError>> {
        self.store.examine(topic, request)
    }

    fn examine_keys<'a>(
        &'a self,
        app: &'a AppName,
        topic: Option<&'a TopicName>,
        after: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Examined, StoreError>> {
        self.store.examine_keys(app, topic, after)
    }

    fn give_up<'a>(&'a self, topic: &'a TopicKey, job: &'a GiveUp) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.give_up(topic, job)
    }

    fn statistics<'a>(
        &'a self,
        topic: &'a TopicKey,
        from: u64,
        to: u64,
    ) -> BoxFuture<'a, Result<Vec<MinuteCounts>, StoreError>> {
        self.store.statistics(topic, from, to)
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        let replayed = self.changes.replay_into(&self.copy, self.replayed.load(Ordering::Relaxed));
        self.replayed.store(replayed, Ordering::Relaxed);
        assert_eq!(dump(&self.store, topic), dump(&self.copy, topic), "replaying the changes gives another topic");
        self.store.counts(topic)
    }
}
