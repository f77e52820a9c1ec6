//! What a node notes of a job while it runs.

use std::time::Duration;

use super::LeaseStatus;
use crate::job::{JobId, Metadata, Progress, Sequence, Token};

/// Request of [`exhaust`](super::super::Request::Exhaust).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhaust {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// The job.
    pub id: JobId,
    /// The token of the run.
    pub token: Token,
    /// The new metadata: exhausted, with the cause and the last error.
    pub metadata: Metadata,
}

/// Request of [`note`](super::super::Request::Note).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// The job.
    pub id: JobId,
    /// The token of the run.
    pub token: Token,
    /// The notes of a run have growing numbers, and one does nothing after a later one. 0: none, so it is done in any case.
    pub number: u64,
    /// What is noted.
    pub what: Noting,
}

/// What a run notes while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noting {
    /// The new metadata: with the state that the next run gets.
    State(Metadata),
    /// How far the run has come, as long as it lasts.
    Progress(Progress),
}

/// Answer of [`exhaust`](super::super::Request::Exhaust) and [`note`](super::super::Request::Note).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// The lease status after the step.
    pub lease_status: LeaseStatus,
    /// Whether it was noted.
    pub note: NoteVerdict,
}

/// The store's answer to a note about a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteVerdict {
    /// It was.
    Done,
    /// The job has another token, or the node does not hold it.
    Stale,
    /// The run has an unfenced end (a delete, cancel or ack from outside): no handler may start.
    Ended,
    /// That end is a cancel. Only the answer to an [`Isolate`](super::Isolate) that notes nothing tells it from the others.
    Cancelled,
}
