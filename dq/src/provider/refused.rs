//! Jobs that dq took, and that their topics refused afterwards.

use serde::Serialize;

use crate::time::Timestamp;

/// How many jobs a line of the log, or a report of health, names at most.
pub(crate) const MAX_SHOWN: usize = 16;

/// A job that dq took, and that its topic refused for good afterwards: a follow-up, or an add from a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RefusedJob {
    /// The topic that refused it.
    pub topic: String,
    /// Its id.
    pub job: String,
    /// Why.
    pub cause: String,
    /// When, by the wall clock of this process.
    pub at: Timestamp,
}

impl RefusedJob {
    pub(crate) fn new(topic: &impl ToString, job: &impl ToString, cause: String, at: Timestamp) -> Self {
        Self { topic: topic.to_string(), job: job.to_string(), cause, at }
    }
}

/// Adds to the last ones that are shown.
pub(crate) fn show_last<T>(shown: &mut Vec<T>, last: T) {
    if shown.len() == MAX_SHOWN {
        shown.remove(0);
    }
    shown.push(last);
}
