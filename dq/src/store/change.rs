//! When a job is due, and the step `change` of a producer: another due time, payload or options for a job that is already there
//! (rule 28).

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::job::{JobId, Metadata, Record, State};
use crate::time::Timestamp;

/// When a job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Due {
    /// This long after the store executes the step.
    After(Duration),
    /// At this time of the store's clock; a time in the past means now.
    At(Timestamp),
    /// After the usual delay of the topic: its default delay, if it has one (rule 29). Otherwise this long after the store executes
    /// the step. The default delay also becomes the delay in the job's metadata.
    Usual(Duration),
}

/// No change moves a due time beyond this: it is the latest time with which every store calculates exactly.
pub const LATEST_DUE: Timestamp = Timestamp::from_millis(1 << 42);

/// Why a store refuses to extend a job.
pub(crate) const LAST_VERSION: &str = "its version cannot grow any more; add it again with `replace_existing`";

/// A change of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobChange {
    /// The job's id.
    pub id: JobId,
    /// What changes.
    pub what: ChangeKind,
    /// The job is changed only while it has this version.
    pub if_version: Option<u32>,
    /// Who sends it, for events and histories: any text of at most [`MAX_AUTHOR`](super::MAX_AUTHOR) bytes; `None`: the producer.
    pub by: Option<Arc<str>>,
}

impl JobChange {
    /// A change without conditions, by its producer.
    pub const fn new(id: JobId, what: ChangeKind) -> Self {
        Self { id, what, if_version: None, by: None }
    }
}

/// What changes of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is due then; a past time means now.
    Reschedule(Due),
    /// It is due this much later than it was, whatever the time is now.
    ExtendBy(Duration),
    /// It is due now. A job that is due already keeps its place in the order.
    RunNow,
    /// It gets the payload of this record, whose metadata say nothing.
    Update(Record),
    /// It gets these options.
    Options(OptionChange),
}

/// Options of a job, each in place of the one that the job has. What is missing stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionChange {
    /// Its retry policy.
    pub retry: Option<String>,
    /// All its headers.
    pub headers: Option<Vec<(String, String)>>,
    /// How long it is kept as DONE.
    pub retain: Option<Duration>,
}

impl OptionChange {
    /// The metadata with these options.
    pub(crate) fn of(&self, metadata: Metadata) -> Metadata {
        let Self { retry, headers, retain } = self.clone();
        Metadata {
            retry: retry.or(metadata.retry),
            headers: headers.unwrap_or(metadata.headers),
            retain: retain.unwrap_or(metadata.retain),
            ..metadata
        }
    }
}

impl ChangeKind {
    /// Whether a job in this state can be changed so. A waiting broadcast counts as DELAYED.
    pub const fn applies_to(&self, state: State) -> bool {
        match self {
            Self::Reschedule(_) | Self::ExtendBy(_) | Self::RunNow => matches!(state, State::Delayed),
            Self::Update(_) | Self::Options(_) => matches!(state, State::Delayed | State::Unacked | State::Dead),
        }
    }
}

/// What a change found and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeOutcome {
    /// The state of the job; `None` if there is no such job. A broadcast that waits counts as DELAYED.
    pub found: Option<State>,
    /// Whether it was changed, and if not why.
    pub verdict: ChangeVerdict,
    /// The version of the job after this; 0 if there is none.
    pub version: u32,
    /// When the job is due after this; `None` if it does not wait for a time.
    pub due: Option<Timestamp>,
}

/// Whether a job was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeVerdict {
    /// It was.
    Changed,
    /// There is no such job, or no job in this state can be changed so.
    Refused,
    /// The job has another version than the change names.
    OtherVersion,
    /// The version cannot grow any more.
    LastVersion,
    /// Nothing was done, because the broadcasts that the batch has to rewrite have too many bytes: send the change again in another
    /// batch. Never the answer to the first broadcast of a batch.
    Later,
}
