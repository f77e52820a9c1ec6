//! **Unstable:** this module is for authors of stores and may change with every version. Programs choose a store by its
//! URL, with [`ContextFactory::store`](crate::ContextFactory::store).
//!
//! The contract of a store: the steps of the protocol. Each step is atomic and touches a bounded number of jobs.
//!
//! A node sends its steps of a topic through a [`Link`], a provider its batches through a [`Producer`]. The [`Store`] makes both, and
//! answers queries. `operations` is the table of all that can be asked.
//!
//! **The store executes steps in the order of the calls**: a request is in flight when the method returns, and the
//! future is only its answer. Dropping the future drops the answer, not the request.
//!
//! A node's requests name the last sequence number whose answer it has read, and every answer to a link carries a
//! [`LeaseStatus`](step::LeaseStatus): the sequence number and the number of rows. A node that finds a difference
//! reconciles. Rules 6 and 7 of the protocol
//! (`docs/internals/protocol/README.md`) say why.
//!
//! An error of a step means *unknown*: the store may have executed the request, may execute it later, or may never
//! execute it, unless [`StoreError::nothing_done`] returns `true`.

mod change;
mod code;
mod durability;
mod error;
mod examine;
mod export;
pub mod file;
mod follow_up;
mod groups;
mod history;
mod inspect;
mod job_set;
mod limit;
mod limits;
mod link;
mod masked;
pub mod memory;
mod memory_use;
mod moves;
mod operations;
mod outage;
mod outbox;
mod overview;
mod pending;
mod producer;
mod rate;
mod raw;
#[cfg(feature = "redis")]
pub mod redis;
mod signals;
mod statistics;
pub mod step;
mod topic_state;
mod within;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub(crate) use change::LAST_VERSION;
pub use change::{ChangeKind, ChangeOutcome, ChangeVerdict, Due, JobChange, LATEST_DUE, OptionChange};
pub use code::{FindingCode, Severity};
pub use durability::Durability;
pub use error::StoreError;
pub(crate) use examine::kept_of;
pub use examine::{Danger, Examine, Examined, ForeignRow, GiveUp, MAX_EXAMINED, Mismatch, Repair};
pub(crate) use export::HeldJob;
pub use export::{Exported, JobCopy};
pub use follow_up::FollowUpBatch;
use follow_up::{Sifted, last_job_of_set, packed_job, with_those_over};
pub use groups::{GroupPage, GroupSeen, GroupsRequest, MAX_GROUPS};
pub use history::{HISTORY_BYTES, HistorySetting, JobHistory, MAX_ENDED_HISTORIES, MAX_HISTORY, MAX_HISTORY_RETENTION};
pub use inspect::{Cursor, MAX_NAMES, Page, PageRequest, Stored, TopicCounts, TopicNames};
pub use job_set::{
    ACKED_HEADER, DEAD_HEADER, JobSetSummary, LEFT_HEADER, MAX_MEMBERS, MAX_MEMBERS_AT_ONCE, MAX_SETS, MAX_WAITED_FOR,
    MemberEnd, Membership, OnDead, SetChange, SetCounts, SetOutcome, SetRefusal, SetState, SetVerb, SetsRequest,
};
pub(crate) use job_set::{CANCELLED_AT_ONCE, SET_KEPT};
pub use limit::{
    Limit, LimitKind, MAX_CONCURRENCY, MAX_GROUP_CONCURRENCY, MAX_WAITING, MaxWaiting, TooHeavy, TopicFull, TopicLimit,
};
#[cfg(feature = "redis")]
pub(crate) use limit::{rate_in, stored_rate};
pub use limits::{MAX_AHEAD, check_ahead};
pub use link::{Link, LinkOptions, Pending};
#[cfg(test)]
pub(crate) use masked::SECRETS as SECRET_URLS;
pub(crate) use masked::{is_word, masked_url};
pub use memory_use::MemoryUse;
pub use moves::{LISTENING, MAX_MOVES, MOVES_BYTES, Moves, Transition};
#[cfg(feature = "redis")]
pub(crate) use moves::{escaped, plain};
pub use operations::{Answer, Batch, BatchReply, Query, QueryReply, Request, RequestKind, StepRequest};
pub(crate) use outage::{Outage, Party, WARNING_PAUSE};
pub use outbox::{
    Ahead, FOLLOW_UP_BYTES, FollowUpBatches, FollowUpOutcome, MAX_ENTRIES, MAX_FOLLOW_UPS, MAX_READ, OutboxEntry,
    OutboxPosition, OutboxSeen, Packed, Relay, Relayed, relay_of,
};
pub(crate) use outbox::{OUT_OF_ORDER, Waits, is_relay};
pub use overview::{DueCount, HolderPage, HolderSeen, MAX_BUCKETS, MAX_NODES, NodesRequest, TopicOverview};
pub(crate) use pending::{AddedJob, End, Ended, PendingCommand, Replacement};
pub use producer::{
    AddOutcome, BatchAnswer, CALL_SLOTS, Command, CommandKind, CommandOutcome, Import, ImportOutcome, NewJob, Numbered,
    OnDuplicate, Producer,
};
pub(crate) use rate::Pace;
pub use rate::Rate;
pub use signals::{BroadcastMessage, Feed, Interest, Signal, Signals};
pub(crate) use statistics::MINUTE;
pub use statistics::{LATENESS_BOUNDS, MAX_MINUTES, MinuteCounts, RECENT_MINUTES};
pub use topic_state::{
    Drain, MAX_AUTHOR, MAX_LEFT, MAX_REASON, Pause, SetTopic, TopicChange, TopicDelay, TopicSet, TopicState,
};
pub(crate) use topic_state::{Gate, Slots, check_said};

pub(crate) use operations::other_kind;
use operations::{operations, query_calls};
pub(crate) use within::{answered_within, in_call_timeout, no_answer};

use crate::job::{AppName, JobId, JobState, NodeId, ProducerId, TopicKey, TopicName};
use crate::time::Timestamp;

/// The version of the protocol that this version of dq speaks.
pub const PROTOCOL_VERSION: u32 = 2;

/// The most topics that [`Store::topics`] lists.
const MAX_TOPICS: usize = 10_000;

/// Keeps jobs. An author implements the first five methods; the others are typed calls of [`ask`](Self::ask).
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The URL without secrets, for logs.
    fn url(&self) -> String;

    /// Answers a query.
    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>>;

    /// Makes a new, ordered link of `node` to `topic`. Drop the link before it first: the store may execute its
    /// requests in flight late or never.
    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link>;

    /// Makes a handle with which `producer` sends adds and commands to `topic`, in order.
    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer>;

    /// Subscribes to the signals of a topic. The subscription starts when the future completes. Any signal may be lost.
    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>>;

    /// What the jobs take in memory, if the store keeps them in the memory of this process. Asks nothing: `health()` reads it.
    fn memory_use(&self) -> Option<MemoryUse> {
        None
    }

    /// A [link](Self::link_with) with the usual options.
    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        self.link_with(topic, node, LinkOptions::default())
    }

    /// Returns the first 10,000 of the topics that [`topics_behind`](Self::topics_behind) lists page by page.
    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        Box::pin(async move {
            let (mut held, mut after) = (Vec::new(), None::<String>);
            loop {
                let page = self.topics_behind(app, after.as_deref(), MAX_TOPICS - held.len()).await?;
                held.extend(page.names);
                after = page.next;
                if after.is_none() || held.len() >= MAX_TOPICS {
                    return Ok(held);
                }
            }
        })
    }

    operations!(queries, query_calls);
}

const _: Option<&dyn Store> = None;
