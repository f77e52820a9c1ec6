//! One provider's ordered requests to one topic: numbered batches, so that a repeated call is the same call (rule 18).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::{ChangeOutcome, Due, JobChange};
use super::export::JobCopy;
use super::job_set::{SetChange, SetOutcome};
use super::limit::{MaxWaiting, TooHeavy, TopicFull};
use super::link::Pending;
use super::operations::{Batch, BatchReply, batch_calls, operations, other_kind};
use super::outbox::{FollowUpOutcome, OutboxEntry};
use super::raw;
use super::topic_state::{SetTopic, TopicSet};
use crate::job::{Delivery, Fence, GroupName, JobId, Record, State};
use crate::time::Timestamp;

/// How many answers a store keeps for each producer, and so how many batches may be unanswered.
pub const CALL_SLOTS: u64 = 16;

/// Sends adds and commands to one topic, in the order of the calls.
///
/// The caller repeats a batch without an answer, or with an outage as its answer, under its own number. Only a batch that the
/// store answers with [`BatchAnswer::Late`] gets a new number. The caller sends number `n + 16` only once `n` has its final
/// answer.
pub trait Producer: fmt::Debug + Send + Sync + 'static {
    /// Sends a batch before it returns, as [`Link::ask`](super::Link::ask) sends a request. Batches of all kinds share their numbers.
    fn ask(&self, batch: Batch) -> Pending<BatchReply>;

    /// Takes back every batch, if none of them can have left the program: while the store is still connecting. Their
    /// answers are then [`StoreError::NotSent`](super::StoreError::NotSent) at the next poll. Returns whether it did;
    /// the caller then drops the producer.
    fn take_back(&self) -> bool {
        false
    }

    /// For how long no byte has come over the connection of the batches that are in flight; `None` if the producer does not
    /// know. Sends nothing.
    fn silent_for(&self) -> Option<Duration> {
        None
    }
}

impl Batch {
    /// The number of the call.
    pub(super) const fn number(&self) -> u64 {
        match self {
            Self::Add { batch } => batch.number,
            Self::Command { batch } => batch.number,
            Self::Change { batch } => batch.number,
            Self::Import { number, .. } | Self::Set { number, .. } | Self::JobSet { number, .. } => *number,
            Self::Relay { entry } => entry.position.at,
        }
    }
}

const _: Option<&dyn Producer> = None;

impl dyn Producer {
    operations!(batches, batch_calls);
}

/// A batch and its call number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered<T> {
    /// Counts the batches of this producer from 1, those of adds, commands, changes and imports together.
    pub number: u64,
    /// At most [`MAX_JOBS`](super::step::MAX_JOBS), without an id twice.
    pub items: Vec<T>,
}

/// The answer to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchAnswer<T> {
    /// An outcome for each item, in order. A repeat returns the answer that the store kept.
    Done(Vec<T>),
    /// The store executed a later batch of this producer, but not this one, and never will under this number.
    Late,
}

#[cfg(feature = "redis")]
impl<T> BatchAnswer<T> {
    /// The same with what this makes of the outcomes.
    pub(super) fn map<U>(self, change: impl FnOnce(Vec<T>) -> Vec<U>) -> BatchAnswer<U> {
        match self {
            Self::Done(outcomes) => BatchAnswer::Done(change(outcomes)),
            Self::Late => BatchAnswer::Late,
        }
    }
}

/// What to do if a job with the same id exists. A DONE job does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum OnDuplicate {
    /// Keep the old job and answer [`AddOutcome::Exists`], which the caller reports as an error.
    #[default]
    Reject,
    /// Keep the old job and answer [`AddOutcome::Exists`], which the caller accepts.
    Keep,
    /// Replace the old job; a running one is replaced when its run ends.
    Replace,
    /// Give an old job that waits the new payload and the new due time, which is then at most this long after its first add with
    /// `Extend`; the new job replaces a running one when its run ends, and a replacement that waits for that is extended itself
    /// (rule 28). Any other job is kept, with [`AddOutcome::Exists`]. An import treats it as [`Keep`](Self::Keep).
    Extend {
        /// `None`: without a limit.
        at_most: Option<Duration>,
    },
}

/// A job to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJob {
    /// The job's id.
    pub id: JobId,
    /// The id was generated, so no job with this id exists.
    pub generated: bool,
    /// When the job is due.
    pub due: Due,
    /// How long after its first due time the job is still worth running; the store writes that time into its record.
    pub expires_after: Option<Duration>,
    /// What the store keeps of the job.
    #[serde(with = "raw::record")]
    pub record: Record,
    /// What to do if a job with this id exists.
    pub on_duplicate: OnDuplicate,
    /// Whether the job goes to the queue, to the broadcasts, or to both.
    pub deliver: Delivery,
    /// How many jobs may wait (rule 29); `None`: any number.
    pub max_waiting: Option<MaxWaiting>,
    /// For how long after this add its id counts as existing, whatever becomes of the job (rule 18). A generated id is no other's anyway.
    pub unique_for: Option<Duration>,
}

impl NewJob {
    /// A job for the queue that is due at once. It is not added if its id exists.
    pub const fn new(id: JobId, record: Record) -> Self {
        Self {
            id,
            generated: false,
            due: Due::After(Duration::ZERO),
            expires_after: None,
            record,
            on_duplicate: OnDuplicate::Reject,
            deliver: Delivery::Queue,
            max_waiting: None,
            unique_for: None,
        }
    }
}

/// What the store did with a job to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddOutcome {
    /// The job waits.
    Added,
    /// A job with this id exists in this state and is untouched. A broadcast that waits counts as DELAYED. DONE: it has ended, and its id
    /// stays taken (rule 18).
    Exists(State),
    /// The job with this id was deleted, and its id stays taken (rule 18).
    Deleted,
    /// The job replaced one that waited, was parked or was DEAD.
    Replaced(State),
    /// The job that waited, or the replacement of a running one, has the new payload and is due at another time.
    Extended {
        /// When it is due.
        due: Timestamp,
        /// Its version.
        version: u32,
    },
    /// The job replaces a running one when that run ends.
    ReplacementWaits,
    /// The old job is running, and a fenced ack is pending: the new job replaces it if the ack is for this run; otherwise the
    /// store drops the new job.
    ReplacementIfEnds,
    /// The batch has the id twice: the store left this job out. Send it in another batch.
    Repeated,
    /// Nothing was done, because the records that the batch has to rewrite have too many bytes: send the job in another batch. Only
    /// under [`OnDuplicate::Extend`], and never the answer to the first of them.
    Later,
    /// As many jobs wait as may, and the job is not one of them (rule 29).
    TopicFull(TopicFull),
    /// As many jobs of its group wait as may, and the job is not one of them (rule 29).
    GroupFull {
        /// The group.
        group: GroupName,
        /// The numbers.
        full: TopicFull,
    },
    /// No period of the rate has room for the job, which is not added (rule 29).
    TooHeavy(TooHeavy),
    /// The store cannot add this job, for this reason.
    Refused(String),
    /// The store is away, and the buffer of the provider has the job until it is back. No store answers this.
    Buffered,
}

impl AddOutcome {
    /// Whether the store took the job, also as one that waits for the end of a run.
    pub const fn is_taken(&self) -> bool {
        matches!(
            self,
            Self::Added | Self::Replaced(_) | Self::Extended { .. } | Self::ReplacementWaits | Self::ReplacementIfEnds
        )
    }
}

/// Copies of jobs, from an export, to be put where they belong (rule 27).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// At most [`MAX_JOBS`](super::step::MAX_JOBS), and by the sender's care at most
    /// [`DEFAULT_BYTES`](super::step::DEFAULT_BYTES) of records or one larger one.
    pub copies: Vec<JobCopy>,
    /// What to do with a copy whose id is known. Here a DONE job does count.
    pub on_duplicate: OnDuplicate,
    /// No later run in this topic gets this fence or a smaller one.
    pub fence: Fence,
}

/// What the store did with a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is in its place.
    Added,
    /// A job with this id exists in this state and is untouched; a broadcast that waits, if the copy is one. With
    /// [`OnDuplicate::Replace`], only a RUNNING job.
    Exists(State),
    /// It took the place of a job in this state.
    Replaced(State),
    /// The batch has this id twice: the store left this copy out. Send it in another batch.
    Repeated,
    /// Another copy of the batch exists already, so under [`OnDuplicate::Reject`] the store did nothing.
    NotDone,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Removes the job; a running one is deleted when its run ends, whatever the run's outcome is.
    Delete,
    /// Deletes the job, and asks the handler of a running one to stop.
    Cancel,
    /// Ends the job as done: a parked one, a waiting one (only without a fence), or a running one when its run ends.
    Ack,
    /// Makes a DEAD job due now with all its attempts again, or an UNACKED one due now as it was.
    Requeue,
    /// Lets the group of the job pass it: the job gives its seat back, unless it runs.
    Pass,
}

impl CommandKind {
    /// Every command.
    pub(crate) const ALL: [Self; 5] = [Self::Delete, Self::Cancel, Self::Ack, Self::Requeue, Self::Pass];

    /// Its letter in scripts and in moves.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Delete => "d",
            Self::Cancel => "c",
            Self::Ack => "a",
            Self::Requeue => "q",
            Self::Pass => "p",
        }
    }

    /// The command as a word, for example `requeue`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Cancel => "cancel",
            Self::Ack => "ack",
            Self::Requeue => "requeue",
            Self::Pass => "pass",
        }
    }
}

/// A command for one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What the command does.
    pub verb: CommandKind,
    /// The job's id.
    pub id: JobId,
    /// Limits an ack or requeue to this run of the job.
    pub fence: Option<Fence>,
    /// The command does nothing unless the job has this version (rule 28).
    pub if_version: Option<u32>,
    /// Who sends it, for events and histories: any text of at most [`MAX_AUTHOR`](super::MAX_AUTHOR) bytes; `None`: the producer.
    pub by: Option<Arc<str>>,
}

impl Command {
    /// A command without conditions, by its producer.
    pub const fn new(verb: CommandKind, id: JobId) -> Self {
        Self { verb, id, fence: None, if_version: None, by: None }
    }
}

/// What a command found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The state of the job; `None` if there is no such job. A broadcast that waits counts as DELAYED.
    pub found: Option<State>,
    /// Whether anything changed: the job was removed or moved, or the command is pending until its run ends. A fenced ack of
    /// a running job is pending whatever its fence is, and does nothing when that run has another fence.
    pub changed: bool,
    /// The record of the job, if the command removed it. The answer to a repeat has no records, and the answer to a batch has
    /// at most [`DEFAULT_BYTES`](super::step::DEFAULT_BYTES) of them, or one larger one: later ones are left out.
    pub removed: Option<Record>,
    /// The version of the job, if the command names another one and so did nothing.
    pub other_version: Option<u32>,
}
