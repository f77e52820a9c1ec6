//! When something is due, as a request says it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
