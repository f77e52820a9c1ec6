//! The reasons why a job has not run, for the description of the API.
#![expect(dead_code, reason = "these types describe what others make")]

use utoipa::ToSchema;

use super::answers::{Ended, Node};

/// One reason why a job has not run; `reason` says which.
#[derive(ToSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(super) enum Reason {
    /// The topic has no job with this id.
    Unknown,
    /// There is no such job any more: it ended at `at`, and `by` asked for that.
    Gone {
        at: u64,
        how: Ended,
        #[schema(required = true)]
        by: Option<String>,
    },
    /// Its due time has not come.
    NotDueYet { due: u64, now: u64 },
    /// It has failed, and waits for its next attempt.
    RetryWaits {
        due: u64,
        attempts: u16,
        #[schema(required = true)]
        cause: Option<String>,
        #[schema(required = true)]
        error: Option<String>,
    },
    /// The topic is paused.
    Paused {
        because: String,
        by: String,
        since: u64,
        #[schema(required = true)]
        until: Option<u64>,
    },
    /// The topic drains, and the job became due after that began.
    Draining { because: String, by: String, since: u64 },
    /// No node listens; `last` was the last one that did, expected until `until`.
    NoListener {
        #[schema(required = true)]
        last: Option<String>,
        #[schema(required = true)]
        until: Option<u64>,
    },
    /// Other jobs have been due for longer.
    Behind { earlier: usize, is_exact: bool },
    /// Every node that listens is busy with other jobs.
    Busy { nodes: Vec<Node> },
    /// Processes died while they ran it.
    Crashed { crashes: u32 },
    /// It has expired.
    Expired { at: u64 },
    /// Nothing stands in its way.
    Next { due: u64 },
    /// A node runs it now; `lease` is when the lease of that node ends.
    Running {
        #[schema(required = true)]
        node: Option<String>,
        #[schema(required = true)]
        lease: Option<u64>,
    },
    /// The lease of the node that held it has run out.
    LeaseRanOut { node: String, at: u64 },
    /// Its handler parked it.
    Unacked { since: u64 },
    /// No attempt is left.
    Dead {
        since: u64,
        attempts: u16,
        #[schema(required = true)]
        cause: Option<String>,
        #[schema(required = true)]
        error: Option<String>,
    },
    /// It has run, and is kept until then.
    Done { until: u64 },
}
