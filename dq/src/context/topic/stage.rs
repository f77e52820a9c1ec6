//! A held job, and how far it has come.

use super::runs::RunId;
use crate::job::{Cause, Metadata, Record, Token};
use crate::listener::Failure;
use crate::store::step::Change;

/// Which step claimed a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A transfer, because the job was due: it runs `on_due`, or `final_retry` if no attempt is left.
    Due,
    /// A sweep, because the job was UNACKED for its age: it runs `process_unacked`.
    Swept,
}

/// How far a held job has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// The job waits for a permit.
    Waiting,
    /// The job waits for the answer to `isolate`.
    Isolating,
    /// A handler runs for the job.
    Running(RunId),
    /// No attempt is left; the job waits for the answer to `exhaust`.
    Exhausting {
        /// The request is in flight.
        sent: bool,
    },
    /// The job waits for the verdict on its outcome.
    Settling {
        /// What the outcome asks of the store.
        change: Change,
        /// The outcome is in flight.
        sent: bool,
        /// The handler starts when the verdict is good, because the job is acked on claim.
        then_run: bool,
    },
}

impl Stage {
    /// An outcome that is not sent yet.
    pub(super) const fn settling(change: Change) -> Self {
        Self::Settling { change, sent: false, then_run: false }
    }

    pub(super) const fn needs_no_permit(&self) -> bool {
        matches!(self, Self::Settling { then_run: false, .. })
    }
}

/// A job that this node holds.
#[derive(Debug)]
pub(super) struct HeldJob {
    pub(super) token: Token,
    pub(super) record: Record,
    /// The metadata as this node knows it: newer than the record's after a failure.
    pub(super) metadata: Metadata,
    pub(super) crashes: u32,
    pub(super) mode: Mode,
    /// [`Held`](super::held::Held) changes it, and keeps its queues and counters in step.
    pub(super) stage: Stage,
}

impl HeldJob {
    pub(super) fn new(
        token: Token,
        record: Record,
        metadata: Metadata,
        crashes: u32,
        mode: Mode,
        stage: Stage,
    ) -> Self {
        Self { token, record, metadata, crashes, mode, stage }
    }

    /// The bytes of its record.
    pub(super) fn size(&self) -> usize {
        self.record.as_bytes().len()
    }

    pub(super) const fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Why no attempt is left; `None` if one is.
    pub(super) fn exhausted_by(&self) -> Option<Failure> {
        let cause = self.metadata.cause.unwrap_or(Cause::Crashes);
        self.metadata.exhausted.then(|| Failure::new(cause, self.metadata.error.clone().unwrap_or_default()))
    }
}
