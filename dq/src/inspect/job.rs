//! One job, and the job that has been in its state for the longest.

use serde::Serialize;

use crate::job::{Cause, GroupName, JobId, NodeId, Priority, Progress, State, Weight};
use crate::store::Stored;
use crate::time::Timestamp;

/// A job without its payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Job))]
#[non_exhaustive]
pub struct JobSummary {
    /// Its id.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// When it is due (DELAYED), since when it is there (UNACKED, DEAD), or until when (DONE); `None` while it is RUNNING.
    pub at: Option<Timestamp>,
    /// The node that runs it, where the read says so: pages of RUNNING jobs and [`why`](super::Inspector::why) do.
    pub node: Option<NodeId>,
    /// Which of the due jobs of its topic go first.
    pub priority: Priority,
    /// How much of the rate of its topic its start spends.
    pub weight: Weight,
    /// Its group.
    pub group: Option<GroupName>,
    /// Failed runs so far.
    pub attempts: u16,
    /// How often a process died while it ran the job; only of a job that was read by its id.
    pub crashes: u32,
    /// Why the last run failed, or why no attempt is left.
    pub cause: Option<Cause>,
    /// The last error, cut to 4 KiB; hidden if a payload did not decode, because such an error quotes the payload.
    pub error: Option<String>,
    /// The headers, in the order in which they were added.
    pub headers: Vec<(String, String)>,
    /// How often its due time or its payload was changed.
    pub version: u32,
    /// After this time it becomes DEAD without a run.
    pub expires_at: Option<Timestamp>,
    /// How far its run has come, if the handler says so; only of a job that was read by its id.
    pub progress: Option<Progress>,
    /// Bytes of the record.
    pub bytes: usize,
    /// Bytes of the state that a run has kept for the next one; 0: there is none.
    pub kept_state_bytes: usize,
    /// Bytes of the result that the run has left which acked it; 0: there is none.
    pub result_bytes: usize,
    /// Why its record cannot be read: then priority, attempts, cause, error, headers and version say nothing.
    pub unreadable: Option<String>,
    /// The clock of the store; only in an answer of [`why`](super::Inspector::why).
    #[serde(skip_serializing_if = "is_unset")]
    pub store_time: Timestamp,
}

fn is_unset(clock: &Timestamp) -> bool {
    *clock == Timestamp::EPOCH
}

impl JobSummary {
    pub(super) fn new(stored: Stored) -> Self {
        let (state, bytes) = (stored.place.state(), stored.record.as_bytes().len());
        let (at, node) = (stored.place.at(), stored.place.node().cloned());
        let (metadata, unreadable) = match stored.record.metadata() {
            Ok(metadata) => (metadata, None),
            Err(bad) => (crate::job::Metadata::default(), Some(bad.to_string())),
        };
        let hides = metadata.cause == Some(Cause::Decode);
        let error = metadata.error.map(|error| if hides { "(not shown: it quotes the payload)".into() } else { error });
        Self {
            id: stored.id,
            state,
            at,
            node,
            priority: metadata.priority,
            weight: metadata.weight,
            group: metadata.group,
            attempts: metadata.attempts,
            crashes: stored.crashes,
            cause: metadata.cause,
            error,
            headers: metadata.headers,
            version: metadata.version,
            expires_at: metadata.expires_at,
            progress: stored.progress,
            bytes,
            kept_state_bytes: metadata.state.map_or(0, |state| state.as_bytes().len()),
            result_bytes: metadata.result.map_or(0, |result| result.as_bytes().len()),
            unreadable,
            store_time: Timestamp::EPOCH,
        }
    }
}

/// The first job of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OldestJob {
    /// Its id.
    pub id: JobId,
    /// Its state.
    pub state: State,
    /// When it is due (DELAYED), since when it is there (UNACKED, DEAD), or until when (DONE).
    pub at: Timestamp,
}
