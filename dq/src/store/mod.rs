//! The contract of a store: the steps of the protocol, each one atomic on a bounded batch.
//!
//! A node takes its steps of one topic through a [`Link`], a caller through a [`Producer`]; both are handed out by the
//! [`Store`], and **the order of the steps is the order of the calls**: a request is under way when the method returns,
//! and the future is only its answer. Dropping the future drops the answer, not the request.
//!
//! Every request of a link names the last turn it has [heard](step); every answer to a link carries a [`LeaseStatus`](step::Standing):
//! turn and number of rows. Who meets a difference reconciles. `docs/internals/architecture.md` tells why.
//!
//! An error of a step means *unknown*: the request may have been executed, may be executed later, or never, unless
//! [`StoreError::nothing_done`] says so.

mod durability;
mod error;
mod inspect;
mod link;
pub mod memory;
mod producer;
#[cfg(feature = "redis")]
pub mod redis;
mod signals;
pub mod step;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use durability::Durability;
pub use error::StoreError;
pub use inspect::{Cursor, JobPlace, Page, PageRequest, Stored, TopicCounts};
pub use link::{Link, Pending};
pub use producer::{
    AddOutcome, BatchAnswer, CALL_SLOTS, Command, CommandKind, CommandOutcome, Due, NewJob, Numbered, OnDuplicate,
    Producer,
};
pub use signals::{BroadcastMessage, Interest, Signal, Signals};

use crate::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};

/// The version of the protocol that this dq speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// Where jobs are kept.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// What it is, for logs: the URL without secrets.
    fn url(&self) -> String;

    /// First contact with a topic: checks version and types of everything that is kept of it.
    ///
    /// # Errors
    /// [`StoreError::Version`] when the topic was written by a dq that this one cannot share it with,
    /// [`StoreError::WrongType`] when a key of it belongs to something else.
    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>>;

    /// A new, ordered way for `node` to take steps of `topic`. The one before it must be dropped first: what it still had
    /// under way may be executed late or never.
    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link>;

    /// A new, ordered way for `producer` to add to and withdraw from `topic`.
    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer>;

    /// Signals of a topic, from when the future is ready. They are hints: any may be lost.
    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>>;

    /// The jobs with these ids, in their order; at most 1,000.
    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>>;

    /// A page of one place.
    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// The topics of an app that hold anything, in order of their names; at most 10,000. For people and warnings.
    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>>;

    /// How many jobs are where.
    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>>;
}

const _: Option<&dyn Store> = None;
