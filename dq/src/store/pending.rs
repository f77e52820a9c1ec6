//! What waits for the end of a run.

use serde::{Deserialize, Serialize};

use super::raw;
use crate::job::{Delivery, Fence, Record};
use crate::time::Timestamp;

/// What a command from outside did to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    Acked,
    Deleted,
    Cancelled,
}

/// The part of a pending command that ends the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) how: Ended,
    /// The run, or the run that parked the job, that the end is for; `None`: any run. Only an ack has a fence.
    pub(crate) fence: Option<Fence>,
}

impl End {
    /// Whether the end is for the run `fence` of a job whose parking fence is `parked_by`.
    pub(crate) fn applies(self, fence: Option<Fence>, parked_by: Option<Fence>) -> bool {
        self.fence.is_none() || [fence, parked_by].contains(&self.fence)
    }
}

/// A job from an `add`, as the store keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AddedJob {
    #[serde(with = "raw::record")]
    pub(crate) record: Record,
    /// Fixed when the job was added.
    pub(crate) due: Timestamp,
    pub(crate) deliver: Delivery,
}

/// The part of a pending command that takes the job's place: a new job of the same id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Replacement {
    pub(crate) job: AddedJob,
    /// The replacement counts only if the end of the same pending command applies.
    pub(crate) conditional: bool,
}

/// A command or a replacement that waits for the end of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PendingCommand {
    pub(crate) end: Option<End>,
    pub(crate) replacement: Option<Replacement>,
}

impl PendingCommand {
    /// Whether the job ends with any run: no handler may start, and the id counts as absent.
    pub(crate) fn is_unfenced_end(&self) -> bool {
        self.end.is_some_and(|end| end.fence.is_none())
    }
}
