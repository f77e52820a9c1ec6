//! A held job, and how far it has come.

use std::time::Duration;

use super::slab::RunId;
use crate::environment::{Alone, ProcessEntry};
use crate::job::{Cause, JobId, Metadata, Record, RetryPolicy, Suspicion, Token};
use crate::listener::Failure;
use crate::store::RequestKind;
use crate::store::step::{Change, Claim, Tick};

/// Which step claimed a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A transfer, because the job was due: it runs `on_due`, or `on_exhausted` if no attempt is left.
    Due,
    /// A sweep, because the job was UNACKED for its age: it runs `on_park_timeout`.
    Swept,
}

/// How far a held job has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// The job waits for a permit.
    Waiting,
    /// The job waits for the answer to `isolate`.
    Isolating,
    /// The job is a schedule, and a function makes the payload of this tick.
    Making(Box<Tick>),
    /// A handler runs for the job.
    Running(RunId),
    /// No attempt is left; the job waits for the answer to `exhaust`.
    Exhausting,
    /// The job waits for the verdict on its outcome.
    Settling {
        /// What the outcome asks of the store.
        change: Change,
        /// The handler starts when the verdict is good, because the job is acked on claim.
        then_run: bool,
    },
}

impl Stage {
    /// An outcome, after which nothing runs.
    pub(super) const fn settling(change: Change) -> Self {
        Self::Settling { change, then_run: false }
    }

    /// The kind of the request that a job in this stage needs.
    pub(super) const fn request(&self) -> Option<RequestKind> {
        match self {
            Self::Isolating => Some(RequestKind::Isolate),
            Self::Exhausting => Some(RequestKind::Exhaust),
            Self::Settling { .. } => Some(RequestKind::Settle),
            Self::Waiting | Self::Making(_) | Self::Running(_) => None,
        }
    }

    pub(super) const fn needs_no_permit(&self) -> bool {
        matches!(self, Self::Settling { then_run: false, .. })
    }
}

/// A job that this node holds.
#[derive(Debug)]
pub(super) struct HeldJob {
    pub(super) id: JobId,
    pub(super) token: Token,
    pub(super) record: Record,
    /// The metadata as this node knows it: newer than the record's after a failure.
    pub(super) metadata: Metadata,
    pub(super) crashes: u32,
    /// How the job must run, by its crashes.
    pub(super) suspicion: Suspicion,
    /// The job may start: its process counts it among the running handlers.
    pub(super) entry: Option<ProcessEntry>,
    /// The job is alone in its process, until it is dropped here.
    pub(super) alone: Option<Alone>,
    pub(super) mode: Mode,
    /// When the job is due by the node's clock, while it waits for that; its node claimed it before.
    pub(super) starts_at: Option<Duration>,
    /// An outcome of this run was sent and never answered, so it may have taken effect.
    pub(super) is_unknown: bool,
    /// The store may not know the state in the metadata.
    pub(super) is_unsaved: bool,
    /// [`Held`](super::held::Held) changes it, and keeps its queues and counters in step.
    pub(super) stage: Stage,
    /// The request of its stage is in flight, or rests.
    pub(super) sent: bool,
}

impl HeldJob {
    /// A claimed job.
    pub(super) fn new(claim: Claim, metadata: Metadata, mode: Mode, stage: Stage) -> Self {
        let Claim { id, token, record, crashes } = claim;
        Self {
            id,
            token,
            record,
            metadata,
            crashes,
            suspicion: Suspicion::Ordinary,
            entry: None,
            alone: None,
            mode,
            starts_at: None,
            is_unknown: false,
            is_unsaved: false,
            stage,
            sent: false,
        }
    }

    /// Whether the job was in so many crashes that it may be their cause.
    pub(super) fn is_quarantined(&self) -> bool {
        self.suspicion != Suspicion::Ordinary
    }

    /// The bytes of its record.
    pub(super) fn size(&self) -> usize {
        self.record.as_bytes().len()
    }

    /// The retry policy that the job was added with.
    pub(super) fn own_policy(&self) -> Option<RetryPolicy> {
        RetryPolicy::stored(self.metadata.retry.as_deref()?)
    }

    /// Why no attempt is left; `None` if one is.
    pub(super) fn exhausted_by(&self) -> Option<Failure> {
        self.metadata.exhausted.then(|| {
            let (cause, error) = self.last_failure();
            Failure::new(cause, error)
        })
    }

    /// The cause and the text of its last failure.
    pub(super) fn last_failure(&self) -> (Cause, &str) {
        let cause = self.metadata.cause.unwrap_or(Cause::Crashes);
        let unsaid = if cause == Cause::Crashes { "the process died while the job ran alone in it" } else { "" };
        (cause, self.metadata.error.as_deref().unwrap_or(unsaid))
    }
}
