//! A store in the memory of this process: `memory:` and `memory:NAME`.
//!
//! It follows every rule of the protocol (sequence numbers, tokens, pending commands, numbered batches, leases, roles), so tests
//! and simulations meet the same behaviour as with any other store. Everything is lost when the process ends.
//!
//! Other modules use [`MemoryStore`], and in tests and simulations its `Snapshot` and `View`. Everything else is private to
//! this folder, in three layers; a layer calls only the ones below it:
//!
//! * **Connections and locks.** `connection` has the links and producers; they reach a topic only through `cell`, which puts a
//!   lock, a clock and the subscribers around one topic. `queries` hands each query to its topic. `topics` finds the cells by name.
//!   `snapshot` and `view` copy whole topics. `durable` says what a store with a journal needs (a sink, and who waits for it), `journaled` how such a store
//!   is opened and dumped.
//! * **Steps and queries**, which are methods of `topic::Topic`: plain and synchronous, with the time as an argument.
//!
//!   | module | steps |
//!   |---|---|
//!   | `claims` | `transfer`, `sweep` |
//!   | `settle` | `settle`, `reclaim` |
//!   | `leases` | `renew`, `reconcile`, `release`, `scan`, `isolate`, `exhaust` |
//!   | `publish` | `publish`, `wake` |
//!   | `adds`, `change`, `command`, `import`, `set` | `add`, `change`, `command` and `give_up`, `import`, `set` |
//!   | `set_change` | `job_set` |
//!   | `inspect` | the queries |
//!
//!   Every step that ends a run calls `exit`, which obeys the pending command. `changes` turns what a step has done into bytes for a
//!   journal, and such bytes into the same state again.
//! * **State**, which the steps may change: `places` (the jobs; only this folder changes a job, its place and the indexes),
//!   `broadcasts`, `sequences`, `calls` (kept answers), `roles`, `budget` (memory), `histories` (of jobs), `taken` (ids), `members` and `job_sets`, and
//!   `signals`. `recorder` is what the current
//!   step did to jobs: steps say it there once, and when the step ends, those who listen, the histories and the statistics read it.
//!   `time_index`, `kept` and `now` are the values that the state consists of.

mod adds;
mod broadcasts;
mod budget;
mod calls;
mod cell;
mod change;
mod changes;
mod claims;
mod command;
mod connection;
mod durable;
mod exit;
mod histories;
mod import;
mod inspect;
mod job_sets;
mod journaled;
mod kept;
mod leases;
mod members;
mod now;
mod outbox;
mod places;
mod publish;
mod queries;
mod recorder;
mod relay;
mod roles;
mod sequences;
mod set;
mod set_change;
mod settle;
mod signals;
#[cfg(any(test, feature = "testing"))]
mod snapshot;
mod taken;
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

use super::{Interest, Link, LinkOptions, MemoryUse, Producer, Query, QueryReply, Signals, Store, StoreError};
use crate::environment::StoreClock;
use crate::job::{NodeId, ProducerId, TopicKey};
pub use changes::{BadChanges, CHANGES_VERSION, Damage, DumpCursor, PassedOver, Replay, ReplayPart};
pub use durable::{Position, Sink};
pub use journaled::PageSize;
#[cfg(any(test, feature = "testing"))]
pub use snapshot::Snapshot;
#[cfg(feature = "testing")]
pub use view::{InParts, JobView, Row, View};

use connection::{MemoryLink, MemoryProducer};
use topics::Topics;

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

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        self.answer(query).unwrap_or_else(|error| Box::pin(ready(Err(error))))
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        Some(self.topics.budget.now())
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        Arc::new(MemoryLink { cell: self.topics.cell(topic), node: node.clone(), options })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(MemoryProducer { cell: self.topics.cell(topic), producer: producer.clone() })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(ready(self.topics.cell(topic).subscribe(interest)))
    }
}
