//! Pending commands: an *end*, a *replacement*, or both, which take effect when a run ends (rules 12, 13 and 17).
//!
//! An add or command that finds a job RUNNING changes only its pending command, and the step that takes the job out of
//! RUNNING obeys it. Here the pending command is part of the run, so it cannot outlive the run.

use crate::job::{Deliver, Fence, Record};
use crate::time::Timestamp;

/// What a command from outside did to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Acked,
    Deleted,
    Cancelled,
}

/// The part of a pending command that ends the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) how: Ended,
    /// The run, or the run that parked the job, that the end is for; `None`: any run. Only an ack has a fence.
    pub(super) fence: Option<Fence>,
}

impl End {
    /// Whether the end is for the run `fence` of a job whose parking fence is `parked_by`.
    pub(super) fn applies(self, fence: Fence, parked_by: Option<Fence>) -> bool {
        self.fence.is_none_or(|named| named == fence || parked_by == Some(named))
    }
}

/// A job from an `add`, as the store keeps it.
#[derive(Debug, Clone)]
pub(super) struct AddedJob {
    pub(super) record: Record,
    /// Fixed when the job was added.
    pub(super) due: Timestamp,
    pub(super) deliver: Deliver,
}

/// The part of a pending command that takes the job's place: a new job of the same id.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    pub(super) job: AddedJob,
    /// The replacement counts only if the end of the same pending command applies.
    pub(super) conditional: bool,
}

/// A command or a replacement that waits for the end of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingCommand {
    pub(super) end: Option<End>,
    pub(super) replacement: Option<Replacement>,
}

impl PendingCommand {
    /// Whether the job ends with any run: no handler may start, and the id counts as absent.
    pub(super) fn is_unfenced_end(&self) -> bool {
        self.end.is_some_and(|end| end.fence.is_none())
    }
}
