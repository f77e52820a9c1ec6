//! **Unstable:** this module is for authors of stores and may change with every version. Programs choose a store by its
//! URL, with [`ContextFactory::store`](crate::ContextFactory::store).
//!
//! The contract of a store: the steps of the protocol. Each step is atomic and touches a bounded number of jobs.
//!
//! A node sends its steps of a topic through a [`Link`], a provider through a [`Producer`]. The [`Store`] makes both.
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
mod due;
mod durability;
mod error;
mod examine;
mod export;
pub mod file;
mod history;
mod inspect;
mod link;
pub mod memory;
mod moves;
mod outage;
mod outage_meter;
mod overview;
mod producer;
#[cfg(feature = "redis")]
pub mod redis;
mod request;
mod signals;
mod statistics;
pub mod step;
mod topic_state;

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub(crate) use change::LAST_VERSION;
pub use change::{ChangeKind, ChangeOutcome, ChangeVerdict, JobChange, LATEST_DUE};
pub use due::Due;
pub use durability::Durability;
pub use error::StoreError;
pub(crate) use examine::kept_of;
pub use examine::{Danger, DangerKind, Examine, Examined, GiveUp, MOST_EXAMINED, Mismatch, MismatchKind};
pub use export::{CopyPlace, ExportPart, ExportRequest, Exported, JobCopy};
pub(crate) use export::{HeldJob, PendingEnd, PendingReplacement};
pub use history::{
    HISTORY_BYTES, HistorySetting, JobHistory, LONGEST_HISTORY, LONGEST_HISTORY_AFTER, MOST_ENDED_HISTORIES,
};
pub use inspect::{Cursor, JobPlace, MOST_NAMES, Page, PageRequest, Stored, TopicCounts, TopicNames};
pub use link::{Link, Pending};
#[cfg(feature = "redis")]
pub(crate) use moves::escaped;
pub use moves::{JobMove, LISTENING, MOST_MOVES, MOVES_BYTES, Moves};
pub(crate) use outage::{Outage, Party, WARNING_PAUSE};
pub use overview::{DueCount, HolderSeen, MOST_BUCKETS, MOST_NODES, NodesPage, NodesRequest, TopicOverview};
pub use producer::{
    AddOutcome, BatchAnswer, CALL_SLOTS, Command, CommandKind, CommandOutcome, Import, ImportOutcome, NewJob, Numbered,
    OnDuplicate, Producer,
};
pub use request::{Answer, Request, RequestKind, StepRequest};
pub use signals::{BroadcastMessage, Feed, Interest, Signal, Signals};
pub(crate) use statistics::MINUTE;
pub use statistics::{LATENESS_BOUNDS, MOST_MINUTES, MinuteCounts, RECENT_MINUTES};
pub(crate) use topic_state::Gate;
pub use topic_state::{
    Drain, LONGEST_AUTHOR, LONGEST_REASON, MOST_LEFT, Pause, SetTopic, TopicChange, TopicDelay, TopicSet, TopicState,
};

use crate::job::{AppName, JobId, NodeId, ProducerId, TopicKey, TopicName};
use crate::time::Timestamp;

/// The version of the protocol that this version of dq speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// Keeps jobs.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The URL without secrets, for logs.
    fn url(&self) -> String;

    /// Gets ready, before anything else is asked: a store on a disk reads its files. It has as long as it needs.
    fn prepare(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    /// Checks that the store can be reached and answers.
    fn contact(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Checks the version of a topic and the types of its keys, before a node or provider uses the topic.
    ///
    /// # Errors
    /// [`StoreError::Version`] if another version of dq wrote the topic and cannot share it, [`StoreError::WrongType`]
    /// if a key of the topic belongs to another program.
    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Makes a new, ordered link of `node` to `topic`. Drop the link before it first: the store may execute its
    /// requests in flight late or never.
    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link>;

    /// As [`link`](Self::link), and the topic counts what its steps do, minute by minute: what they claim, and how the runs end
    /// (rule 33). [`statistics`](Self::statistics) has what was counted.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on: then nothing is counted.
    fn counting_link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        self.link(topic, node)
    }

    /// Makes a handle with which `producer` sends adds and commands to `topic`, in order.
    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer>;

    /// Subscribes to the signals of a topic. The subscription starts when the future completes. Any signal may be lost.
    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>>;

    /// Says that somebody listens to the moves of a topic: for the next [`LISTENING`] its steps tell them to the subscribers that
    /// want moves. Nobody says that listening has ended.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn listen<'a>(&'a self, _topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        let reason = "it only passes jobs on to another store: listen to that one".into();
        Box::pin(ready(Err(StoreError::Unsupported { operation: "listen", reason })))
    }

    /// Says what a topic keeps of the histories of its jobs, from now on and for all nodes and producers (rule 32). Said again, it does
    /// nothing.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`] over the limits of [`HistorySetting`].
    fn keep_history<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _setting: HistorySetting,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(Err(wraps("keep_history"))))
    }

    /// Returns what the topic has kept of the moves of a job, oldest first, also of one that is gone: `None` where it has kept nothing.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn history<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _id: &'a JobId,
    ) -> BoxFuture<'a, Result<Option<JobHistory>, StoreError>> {
        Box::pin(ready(Err(wraps("history"))))
    }

    /// Returns the jobs with these ids, in the order of the ids; at most 1,000. The answer has at most
    /// [`USUAL_BYTES`](step::USUAL_BYTES) of records, or one larger record: if it is shorter than the ids, ask again for
    /// the rest.
    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>>;

    /// Returns a page of the jobs in one state. It costs one command, or two for RUNNING jobs.
    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// Returns the ids of the schedules behind `after`, in their order; at most `limit`, which is 1 to 1,000. It names every
    /// schedule there is, and may name some that are gone.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn schedules<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _after: Option<&'a JobId>,
        _limit: usize,
    ) -> BoxFuture<'a, Result<Vec<JobId>, StoreError>> {
        Box::pin(ready(Err(wraps("schedules"))))
    }

    /// Returns a page of an export: copies of jobs, or of broadcasts that wait, with all that the store keeps of them.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn export<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _request: ExportRequest,
    ) -> BoxFuture<'a, Result<Exported, StoreError>> {
        let reason = "it only passes jobs on to another store: export from that one".into();
        Box::pin(ready(Err(StoreError::Unsupported { operation: "export", reason })))
    }

    /// Returns topics of an app that hold any job or broadcast, in the order of their names; at most 10,000. For people:
    /// nothing is decided by it. A store may forget the names of topics that hold nothing.
    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>>;

    /// Returns a page of what [`topics`](Self::topics) lists: up to `limit` topics behind the name `after`, which need not exist. It
    /// looks at [`MOST_NAMES`] names at most and says how far it looked, so its cost does not grow with the topics of the app.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on: it then takes the page from all names.
    fn topics_behind<'a>(
        &'a self,
        app: &'a AppName,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<TopicNames, StoreError>> {
        Box::pin(async move {
            let mut names = self.topics(app).await?;
            names.retain(|name| after.is_none_or(|after| after < name.as_str()));
            let more = names.len() > limit;
            names.truncate(limit.max(1));
            let next = names.last().map(ToString::to_string).filter(|_| more);
            Ok(TopicNames { names, next })
        })
    }

    /// Returns whether a topic is paused or drains, and its default delay. A pause that has ended by itself is none.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn topic_state<'a>(&'a self, _topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicState, StoreError>> {
        Box::pin(ready(Err(wraps("topic_state"))))
    }

    /// Returns the topic as a whole, with up to `nodes` of the nodes that hold jobs; at most [`MOST_NODES`]. With none it costs one
    /// command, otherwise two.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn overview<'a>(&'a self, _topic: &'a TopicKey, _nodes: usize) -> BoxFuture<'a, Result<TopicOverview, StoreError>> {
        Box::pin(ready(Err(wraps("overview"))))
    }

    /// Returns a page of the nodes that hold jobs of the topic. It costs two commands.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn nodes<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _request: NodesRequest,
    ) -> BoxFuture<'a, Result<NodesPage, StoreError>> {
        Box::pin(ready(Err(wraps("nodes"))))
    }

    /// Returns how many DELAYED jobs are due between each of these times and the next one: from the first on, and before the
    /// second. The times are in order; at most [`MOST_BUCKETS`] and one more. It costs one command.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn due_counts<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _times: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<DueCount>, StoreError>> {
        Box::pin(ready(Err(wraps("due_counts"))))
    }

    /// Examines a page of a topic: where its keys do not agree. It changes nothing, and takes two commands at most.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn examine<'a>(&'a self, _topic: &'a TopicKey, _request: Examine) -> BoxFuture<'a, Result<Examined, StoreError>> {
        Box::pin(ready(Err(wraps("examine"))))
    }

    /// Examines a page of the names of all keys, for those of an app, or of one topic of it: what a topic itself does not know. It
    /// changes nothing, and takes two commands. `after` is where the page begins.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn examine_keys<'a>(
        &'a self,
        _app: &'a AppName,
        _topic: Option<&'a TopicName>,
        _after: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Examined, StoreError>> {
        Box::pin(ready(Err(wraps("examine_keys"))))
    }

    /// Repairs a mismatch, if it is still there, and returns whether it did. It loses no job: one that has no place becomes UNACKED
    /// if it was parked, and otherwise DEAD with its cause. `nodes` are those of [`Examine`].
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn repair<'a>(
        &'a self,
        _app: &'a AppName,
        _mismatch: &'a Mismatch,
        _nodes: &'a [NodeId],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Err(wraps("repair"))))
    }

    /// Makes a DELAYED, UNACKED or DEAD job that no node can decode DEAD, with its payload, and returns whether it did. It leaves a
    /// job alone that runs, or that has another payload by now.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn give_up<'a>(&'a self, _topic: &'a TopicKey, _job: &'a GiveUp) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(ready(Err(wraps("give_up"))))
    }

    /// Returns what endangers the jobs of the store as a whole. It costs one command.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn dangers(&self) -> BoxFuture<'_, Result<Vec<Danger>, StoreError>> {
        Box::pin(ready(Err(wraps("dangers"))))
    }

    /// Returns what the steps of [counting links](Self::counting_link) did in the minutes `from` to `to` of the store's clock, both
    /// included, in order; at most [`MOST_MINUTES`]. Minutes in which nothing was counted are missing, and
    /// those of more than a day ago make room for newer ones. It costs one command.
    ///
    /// A store that only wraps another one, as in tests, need not pass this on; every store that keeps jobs has it.
    fn statistics<'a>(
        &'a self,
        _topic: &'a TopicKey,
        _from: u64,
        _to: u64,
    ) -> BoxFuture<'a, Result<Vec<MinuteCounts>, StoreError>> {
        Box::pin(ready(Err(wraps("statistics"))))
    }

    /// Returns how many jobs of a topic are in each state.
    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>>;
}

const _: Option<&dyn Store> = None;

/// The error of a store that does not pass a request on.
fn wraps(operation: &'static str) -> StoreError {
    StoreError::Unsupported { operation, reason: "it only passes jobs on to another store: ask that one".into() }
}
