//! The way of one caller to one topic: numbered batches, so that a repeated call is the same call (PROTOCOL.md rule 18).

use std::fmt;
use std::time::Duration;

use super::link::Pending;
use crate::job::{Deliver, Fence, JobId, Record, State};
use crate::time::Timestamp;

/// How many answers a store keeps of a producer; as many batches may be unanswered.
pub const CALL_SLOTS: u64 = 16;

/// Adds to and withdraws from one topic, in the order of the calls.
///
/// A batch that was not answered, or was answered with an outage, is sent again under its own number; only one answered
/// [`BatchAnswer::Late`] gets a new number. Number `n + 16` is not sent before `n` has its final answer.
pub trait Producer: fmt::Debug + Send + Sync + 'static {
    /// → DELAYED (or among the broadcasts, or into the mark of a running job).
    fn add(&self, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>>;

    /// Delete, cancel, requeue and ack from outside, by id.
    fn command(&self, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>>;
}

const _: Option<&dyn Producer> = None;

/// A batch and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered<T> {
    /// Counts the batches of this producer, adds and withdrawals together, from 1.
    pub number: u64,
    /// At most [`MOST_JOBS`](super::step::MOST_JOBS), never one id twice.
    pub items: Vec<T>,
}

/// The answer to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchAnswer<T> {
    /// An answer for each item, in order. Of a repeat: the answer that was kept.
    Done(Vec<T>),
    /// A later batch of this producer was executed and this one was not, and now never will be under this number.
    Late,
}

/// When a new job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This long after the store executes the step.
    After(Duration),
    /// At this time; a time that is past is *now*.
    At(Timestamp),
}

/// What to do about an id that is known: waiting, running, UNACKED and DEAD ids are, a DONE one is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnDuplicate {
    /// Leave the old job, say so.
    #[default]
    Reject,
    /// Leave the old job and be content with it.
    Keep,
    /// Put the new job in its place; of a running one, when its run ends.
    Replace,
}

/// A job to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Its id.
    pub id: JobId,
    /// The id was generated, so nothing of it can be known yet.
    pub generated: bool,
    /// When it is due.
    pub due: Due,
    /// How long after its first due time it is still worth running; the store writes the time into its record.
    pub expires_after: Option<Duration>,
    /// What to keep of it.
    pub record: Record,
    /// What to do if the id is known.
    pub on_duplicate: OnDuplicate,
    /// To the queue, to the broadcasts, or both.
    pub deliver: Deliver,
}

/// What became of a job that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddOutcome {
    /// It waits.
    Added,
    /// The id is known, the old job is untouched. A broadcast that waits counts as DELAYED.
    Exists(State),
    /// It took the place of one that waited, was parked or was DEAD.
    Replaced(State),
    /// It takes the place of a running one when that run ends.
    ReplacementWaits,
    /// The running one is under an ack that names a run: it takes its place if that ack is for this run, else it is dropped.
    ReplacementIfEnds,
    /// The batch names the id twice: this one was left out. Send it in another batch.
    Repeated,
    /// The store cannot take this one, and why.
    Refused(String),
}

/// What to do to a job from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Remove it; a running one ends as deleted when its run ends, however it ends.
    Delete,
    /// As delete, and the handler of a running one is asked to stop.
    Cancel,
    /// It is done: ends a waiting (only without a fence) or parked one, and the run of a running one.
    Ack,
    /// Back to DELAYED, due now: a DEAD one with fresh attempts, an UNACKED one as it was.
    Requeue,
}

/// One withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub verb: CommandKind,
    /// To which job.
    pub id: JobId,
    /// Only to this run of it; for ack and requeue.
    pub fence: Option<Fence>,
}

/// What a withdrawal found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Where the job was; `None`: there is no such job. A broadcast that waits counts as DELAYED.
    pub found: Option<State>,
    /// Whether anything changed: it was removed or moved, or a mark was left on its run.
    pub changed: bool,
    /// What was kept of it, where it was removed; a repeated call has it no more.
    pub removed: Option<Record>,
}
