//! Moves: what happened to jobs, as a step tells it to those who listen to the events of a topic.
//!
//! A step notes its moves while it makes them and tells them at its end, in one message. Moves decide nothing, and any message may
//! be lost, as any [`Signal`](super::Signal) may.

mod text;
mod words;

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::producer::CommandKind;
use crate::job::{Cause, JobId, Progress, State};
use crate::time::Timestamp;
#[cfg(feature = "redis")]
pub(crate) use text::{escaped, plain};

/// The most moves in a message.
pub const MAX_MOVES: usize = 1_000;

/// The most bytes of a message.
pub const MOVES_BYTES: usize = 64 << 10;

/// For how long a listener is told moves after it said that it listens.
pub const LISTENING: Duration = Duration::from_secs(30);

/// What happened to a job. Nodes and producers are known by random identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Transition {
    /// It was added, by a program, a schedule or in place of another job, and waits.
    Added {
        /// When it is due.
        due: Timestamp,
    },
    /// It came from an export.
    Imported {
        /// Into this state.
        state: State,
    },
    /// While it runs, a job was added that takes its place when the run ends.
    ReplacementWaits,
    /// Its due time or its payload was changed.
    Changed {
        /// When it is due; `None` if it does not wait.
        due: Option<Timestamp>,
        /// The producer that asked for it.
        by: String,
    },
    /// A node claimed it. It is late by the time of the event minus `due`.
    Claimed {
        /// When it was due.
        due: Timestamp,
        /// The node.
        node: String,
    },
    /// It was acked, and is gone or DONE.
    Done {
        /// The node that ran it, or the producer that acked it; empty if the ack of a producer waited for the end of a run.
        by: String,
    },
    /// A run failed, and it waits for the next one.
    Retried {
        /// Why the run failed.
        cause: Option<Cause>,
        /// When the next run is due.
        due: Timestamp,
        /// The node that ran it.
        node: String,
    },
    /// Its handler wants to run again.
    Rejoined {
        /// When.
        due: Timestamp,
        /// The node that ran it.
        node: String,
    },
    /// Its handler says how far it has come. No history keeps it.
    Progressed {
        /// How far.
        progress: Progress,
    },
    /// Its node gave it back before a handler began or ended.
    GivenBack {
        /// The node.
        node: String,
    },
    /// Its handler parked it, so it is UNACKED.
    Parked {
        /// The node that ran it; empty if the audit put the job back.
        node: String,
    },
    /// It is DEAD.
    Dead {
        /// Why.
        cause: Option<Cause>,
        /// The node that ran it; empty if the audit found the job.
        node: String,
    },
    /// The lease of its node ran out, so it was taken from that node.
    Reclaimed {
        /// The node that had it.
        node: String,
    },
    /// A command came while it runs, and counts when the run ends.
    CommandWaits {
        /// The command.
        #[serde(serialize_with = "as_command")]
        command: CommandKind,
        /// The producer that sent it.
        by: String,
    },
    /// It was deleted or cancelled.
    Deleted {
        /// The producer that asked for it; empty if the command waited for the end of a run.
        by: String,
    },
    /// A DEAD or UNACKED job is due again.
    Requeued {
        /// The producer that asked for it.
        by: String,
    },
    /// A broadcast went out.
    Published,
    /// The time for which it was kept is over, or a broadcast has expired, so it was removed.
    Removed,
    /// It was dropped, because another program removed or mangled its record.
    Dropped,
}

/// The moves of one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moves {
    /// When the step was executed, by the store's clock.
    pub at: Timestamp,
    /// The moves, in their order.
    pub moves: Vec<(JobId, Transition)>,
    /// How many more there were, which had no room.
    pub more: u64,
}

impl Moves {
    /// How many moves the step made.
    pub(crate) fn count(&self) -> u64 {
        self.more + self.moves.len() as u64
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde needs references")]
fn as_command<S: Serializer>(command: &CommandKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(command.as_str())
}
