//! A store in the memory of this process: `memory:` and `memory:NAME`.
//!
//! It follows every rule of the protocol (sequence numbers, tokens, pending commands, numbered batches, leases, roles), so tests
//! and simulations meet the same behaviour as with any other store. Everything is lost when the process ends.
//!
//! Other modules use [`MemoryStore`], and in tests and simulations its `Snapshot` and `View`. Everything else is private to
//! this folder, in three layers; a layer calls only the ones below it:
//!
//! * **Connections and locks.** `connection` has the links and producers; they reach a topic only through `cell`, which puts a
//!   lock, a clock and the subscribers around one topic. `topics` finds the cells by name. `snapshot` and `view` copy
//!   whole topics. `durable` says what a store with a journal needs (a sink, and who waits for it), `journaled` how such a store
//!   is opened and dumped.
//! * **Steps and queries**, which are methods of `topic::Topic`: plain and synchronous, with the time as an argument.
//!
//!   | module | steps |
//!   |---|---|
//!   | `claims` | `transfer`, `sweep` |
//!   | `settle` | `settle`, `reclaim` |
//!   | `leases` | `renew`, `reconcile`, `release`, `scan` |
//!   | `notes` | `isolate`, `exhaust` |
//!   | `publish` | `publish`, `wake` |
//!   | `adds` (with `extend`), `command`, `change`, `import`, `set` | `add`, `command`, `change`, `import`, `set` |
//!   | `give_up` | `give_up` |
//!   | `inspect`, `export` | the queries |
//!
//!   Every step that ends a run calls `exit`, which obeys the pending command; `tick` is the outcome of a schedule. `changes` turns what a step has done into bytes
//!   for a journal, and such bytes into the same state again.
//! * **State**, which the steps may change: `places` (the jobs; only this folder changes a job, its place and the indexes),
//!   `broadcasts`, `sequences`, `calls` (kept answers), `roles`, `moves` (of the current step), `histories` (of jobs; `history` adds to them at the end of each step), `set` (the state of the topic), `statistics` and `signals`. `pending`,
//!   `time_index` (with `leaves`) and `now` are the values that the state consists of.

mod adds;
mod broadcasts;
mod calls;
mod cell;
mod change;
mod changes;
mod claims;
mod command;
mod connection;
mod durable;
mod exit;
mod export;
mod extend;
mod give_up;
mod histories;
mod history;
mod import;
mod inspect;
mod journaled;
mod leases;
mod leaves;
mod moves;
mod notes;
mod now;
mod overview;
#[cfg(feature = "testing")]
mod parts;
mod pending;
mod places;
mod publish;
mod roles;
mod sequences;
mod set;
mod settings;
mod settle;
mod signals;
#[cfg(any(test, feature = "testing"))]
mod snapshot;
mod statistics;
mod tick;
mod time_index;
mod topic;
mod topics;
#[cfg(feature = "testing")]
mod view;

#[cfg(test)]
mod tests;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    Danger, DueCount, Examine, Examined, ExportRequest, Exported, GiveUp, HistorySetting, Interest, JobHistory, Link,
    MinuteCounts, Mismatch, NodesPage, NodesRequest, Page, PageRequest, Producer, Signals, Store, StoreError, Stored,
    TopicCounts, TopicNames, TopicOverview, TopicState,
};
use crate::environment::StoreClock;
use crate::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use crate::time::Timestamp;
pub use changes::{BadChanges, CHANGES_VERSION, Damage, DumpCursor, Replay};
pub use durable::{Position, Sink};
pub use journaled::PageSize;
#[cfg(feature = "testing")]
pub use parts::InParts;
#[cfg(any(test, feature = "testing"))]
pub use snapshot::Snapshot;
#[cfg(feature = "testing")]
pub use view::{JobView, Row, View};

use cell::Cell;
use connection::{MemoryLink, MemoryProducer};
use durable::Waits;
use now::Now;
use topic::Topic;
use topics::Topics;

/// The most topics that a list returns.
const MOST_TOPICS: usize = 10_000;

/// A store in the memory of this process. Cheap to clone; the clones are one store.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    name: Option<Arc<str>>,
    topics: Arc<Topics>,
}

impl MemoryStore {
    /// A new store without a name, which judges due times and leases by `clock`.
    pub fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self { name: None, topics: Arc::new(Topics::new(clock)) }
    }

    /// The store `name` of this process. All callers that use the name share it, and it ends with the last of them. The first
    /// caller's `clock` counts; the others get that one.
    pub fn named(name: &str, clock: Arc<dyn StoreClock>) -> Self {
        Self { name: Some(name.into()), topics: Topics::named(name, || Topics::new(clock)) }
    }
}

impl Store for MemoryStore {
    fn url(&self) -> String {
        format!("memory:{}", self.name.as_deref().unwrap_or_default())
    }

    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    /// Cannot fail: only this version of dq has ever written here.
    fn open<'a>(&'a self, _topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        Arc::new(MemoryLink { cell: self.topics.cell(topic), node: node.clone(), counts: false })
    }

    fn counting_link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        Arc::new(MemoryLink { cell: self.topics.cell(topic), node: node.clone(), counts: true })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(MemoryProducer { cell: self.topics.cell(topic), producer: producer.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(ready(self.topics.cell(topic).subscribe(interest)))
    }

    /// Its steps know who listens.
    fn listen<'a>(&'a self, _topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn keep_history<'a>(
        &'a self,
        topic: &'a TopicKey,
        setting: HistorySetting,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let keep = |topic: &mut Topic, _| topic.keep_history(setting);
        Box::pin(self.topics.cell(topic).ask("keep_history", Waits::CHANGES, keep))
    }

    fn history<'a>(
        &'a self,
        topic: &'a TopicKey,
        id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<JobHistory>, StoreError>> {
        let history = |cell: &Cell| cell.query("history", |topic, _| Ok(topic.history(id)));
        Box::pin(ready(self.topics.known(topic).map_or(Ok(None), |cell| history(&cell))))
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        let get = |cell: &Cell| cell.query("get", |topic, _| topic.get(ids));
        Box::pin(ready(self.topics.known(topic).map_or_else(|| Topic::default().get(ids), |cell| get(&cell))))
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        let page = |cell: &Cell| cell.query("page", |topic, _| topic.page(&request));
        Box::pin(ready(self.topics.known(topic).map_or_else(|| Topic::default().page(&request), |cell| page(&cell))))
    }

    fn schedules<'a>(
        &'a self,
        topic: &'a TopicKey,
        after: Option<&'a JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<JobId>, StoreError>> {
        let ids = |cell: &Cell| cell.query("schedules", |topic, _| topic.schedules(after, limit));
        Box::pin(ready(self.topics.known(topic).map_or_else(|| Ok(Vec::new()), |cell| ids(&cell))))
    }

    fn export<'a>(
        &'a self,
        topic: &'a TopicKey,
        request: ExportRequest,
    ) -> BoxFuture<'a, Result<Exported, StoreError>> {
        let export = |cell: &Cell| cell.query("export", |topic, now| topic.export(now, &request));
        let none = || Topic::default().export(Now::from_micros(self.topics.clock.micros()), &request);
        Box::pin(ready(self.topics.known(topic).map_or_else(none, |cell| export(&cell))))
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        let mut held = self.topics.behind(app, None, usize::MAX).into_iter().filter_map(|(name, cell)| {
            let empty = cell.query("topics", |topic, _| Ok(topic.is_empty()));
            empty.map(|empty| (!empty).then_some(name)).transpose()
        });
        Box::pin(ready(held.by_ref().take(MOST_TOPICS).collect()))
    }

    fn topics_behind<'a>(
        &'a self,
        app: &'a AppName,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<TopicNames, StoreError>> {
        Box::pin(ready(self.topics.names(app, after, limit)))
    }

    fn topic_state<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicState, StoreError>> {
        let state = |cell: &Cell| cell.query("topic_state", |topic, now| Ok(topic.topic_state(now)));
        Box::pin(ready(self.topics.known(topic).map_or_else(|| Ok(TopicState::default()), |cell| state(&cell))))
    }

    fn overview<'a>(&'a self, topic: &'a TopicKey, nodes: usize) -> BoxFuture<'a, Result<TopicOverview, StoreError>> {
        let overview = |cell: &Cell| cell.query("overview", |topic, now| topic.overview(now, nodes));
        let none = || Topic::default().overview(Now::from_micros(self.topics.clock.micros()), nodes);
        Box::pin(ready(self.topics.known(topic).map_or_else(none, |cell| overview(&cell))))
    }

    fn nodes<'a>(&'a self, topic: &'a TopicKey, request: NodesRequest) -> BoxFuture<'a, Result<NodesPage, StoreError>> {
        let nodes = |cell: &Cell| cell.query("nodes", |topic, _| topic.nodes(&request));
        Box::pin(ready(self.topics.known(topic).map_or_else(|| Topic::default().nodes(&request), |cell| nodes(&cell))))
    }

    fn due_counts<'a>(
        &'a self,
        topic: &'a TopicKey,
        times: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<DueCount>, StoreError>> {
        let count = |cell: &Cell| cell.query("due_counts", |topic, _| topic.due_counts(times));
        Box::pin(ready(
            self.topics.known(topic).map_or_else(|| Topic::default().due_counts(times), |cell| count(&cell)),
        ))
    }

    /// A job has one slot with one place, so nothing can disagree.
    fn examine<'a>(&'a self, _topic: &'a TopicKey, _request: Examine) -> BoxFuture<'a, Result<Examined, StoreError>> {
        Box::pin(ready(Ok(Examined::default())))
    }

    fn examine_keys<'a>(
        &'a self,
        _app: &'a AppName,
        _topic: Option<&'a TopicName>,
        _after: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Examined, StoreError>> {
        Box::pin(ready(Ok(Examined::default())))
    }

    fn repair<'a>(
        &'a self,
        _app: &'a AppName,
        _mismatch: &'a Mismatch,
        _nodes: &'a [NodeId],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Ok(false)))
    }

    fn give_up<'a>(&'a self, topic: &'a TopicKey, job: &'a GiveUp) -> BoxFuture<'a, Result<bool, StoreError>> {
        match self.topics.known(topic) {
            Some(cell) => cell.ask("give_up", Waits::CHANGES, |topic, now| Ok(topic.give_up_undecodable(now, job))),
            None => Box::pin(ready(Ok(false))),
        }
    }

    fn dangers(&self) -> BoxFuture<'_, Result<Vec<Danger>, StoreError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    fn statistics<'a>(
        &'a self,
        topic: &'a TopicKey,
        from: u64,
        to: u64,
    ) -> BoxFuture<'a, Result<Vec<MinuteCounts>, StoreError>> {
        let minutes = |cell: &Cell| cell.query("statistics", |topic, _| topic.statistics(from, to));
        let none = || Topic::default().statistics(from, to);
        Box::pin(ready(self.topics.known(topic).map_or_else(none, |cell| minutes(&cell))))
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        let counts = |cell: &Cell| cell.query("counts", |topic, now| Ok(topic.counts(now)));
        let none = || Ok(Topic::default().counts(Now::from_micros(self.topics.clock.micros())));
        Box::pin(ready(self.topics.known(topic).map_or_else(none, |cell| counts(&cell))))
    }
}
