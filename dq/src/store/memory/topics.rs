//! All topics of a store, and the stores that several parts of a program share by name (`memory:NAME`).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::budget::{Budget, Share};
use super::cell::Cell;
use super::durable::{Sink, TopicSink};
use super::topic::Topic;
use crate::environment::StoreClock;
use crate::job::{AppName, Fence, TopicKey, TopicName};
use crate::store::{MAX_NAMES, StoreError, TopicNames};

static NAMED: Mutex<BTreeMap<String, Weak<Topics>>> = Mutex::new(BTreeMap::new());

/// The topics of each app, in the order of their names.
type Cells = BTreeMap<AppName, BTreeMap<TopicName, Arc<Cell>>>;

/// All topics of a store.
#[derive(Debug)]
pub(super) struct Topics {
    pub(super) clock: Arc<dyn StoreClock>,
    /// Where the changes go.
    sink: Option<Arc<dyn Sink>>,
    /// The fence that a new topic begins with.
    fence: AtomicU64,
    pub(super) budget: Arc<Budget>,
    cells: Mutex<Cells>,
}

impl Topics {
    pub(super) fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self { clock, sink: None, fence: AtomicU64::default(), budget: Arc::default(), cells: Mutex::default() }
    }

    pub(super) fn journaled(clock: Arc<dyn StoreClock>, sink: Arc<dyn Sink>) -> Self {
        Self { sink: Some(sink), ..Self::new(clock) }
    }

    /// The fence that a new topic begins with.
    pub(super) fn fence(&self) -> Fence {
        Fence(self.fence.load(Ordering::Acquire))
    }

    pub(super) fn raise_fence(&self, fence: Fence) {
        self.fence.fetch_max(fence.0, Ordering::AcqRel);
    }

    /// The topics of the store `name`; `make` creates them if no live store has that name.
    pub(super) fn named(name: &str, make: impl FnOnce() -> Self) -> Arc<Self> {
        // One insertion is the only change, so a panic in another thread cannot have left the map half-changed.
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topics) = named.get(name).and_then(Weak::upgrade) {
            return topics;
        }
        named.retain(|_, topics| topics.strong_count() > 0);
        let topics = Arc::new(make());
        named.insert(name.to_owned(), Arc::downgrade(&topics));
        topics
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// The topic; its first use creates it.
    pub(super) fn cell(&self, topic: &TopicKey) -> Arc<Cell> {
        let mut cells = self.lock();
        if let Some(cell) = cells.get(&topic.app).and_then(|of_app| of_app.get(&topic.topic)) {
            return Arc::clone(cell);
        }
        let memory = Share::of(Arc::clone(&self.budget));
        let new = Topic { name: Some(topic.topic.clone()), fence: self.fence(), memory, ..Topic::default() };
        let sink = self.sink.clone().map(|sink| TopicSink { topic: topic.clone(), sink });
        let cell = Arc::new(Cell::new(Arc::clone(&self.clock), new, sink));
        cells.entry(topic.app.clone()).or_default().insert(topic.topic.clone(), Arc::clone(&cell));
        cell
    }

    /// The topic, if it has been used before. A query creates nothing.
    pub(super) fn known(&self, topic: &TopicKey) -> Option<Arc<Cell>> {
        self.lock().get(&topic.app)?.get(&topic.topic).map(Arc::clone)
    }

    /// The first topics of an app behind a name, in order. O(log topics + limit).
    pub(super) fn behind(&self, app: &AppName, after: Option<&str>, limit: usize) -> Vec<(TopicName, Arc<Cell>)> {
        let cells = self.lock();
        let Some(of_app) = cells.get(app) else { return Vec::new() };
        let behind = of_app.range::<str, _>((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded));
        behind.take(limit).map(|(name, cell)| (name.clone(), Arc::clone(cell))).collect()
    }

    /// A page of the topics of an app that hold anything.
    pub(super) fn names(&self, app: &AppName, after: Option<&str>, limit: usize) -> Result<TopicNames, StoreError> {
        let (mut names, known) = (Vec::new(), self.behind(app, after, MAX_NAMES + 1));
        for (n, (name, cell)) in known.iter().enumerate().take(MAX_NAMES) {
            if cell.query("topics", |topic, _| !topic.is_empty())? {
                names.push(name.clone());
            }
            let is_full = names.len() >= limit.max(1) || n + 1 == MAX_NAMES;
            if is_full && n + 1 < known.len() {
                return Ok(TopicNames { names, next: Some(name.to_string()) });
            }
            if is_full {
                break;
            }
        }
        Ok(TopicNames { names, next: None })
    }

    /// Every topic that has been used, in order.
    pub(super) fn all(&self) -> Vec<(TopicKey, Arc<Cell>)> {
        let cells = self.lock();
        let key = |app: &AppName, topic: &TopicName| TopicKey { app: app.clone(), topic: topic.clone() };
        let of_app = |(app, of_app): (&AppName, &BTreeMap<TopicName, Arc<Cell>>)| {
            of_app.iter().map(|(topic, cell)| (key(app, topic), Arc::clone(cell))).collect::<Vec<_>>()
        };
        cells.iter().flat_map(of_app).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Cells> {
        // Insertions are the only changes, so a panic in another thread cannot have left a map half-changed.
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
