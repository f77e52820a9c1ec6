//! The lines of an export: JSON objects, each with one field that says what the line is.
//!
//! ```text
//! {"export":{"format":1,"app":"shop"}}
//! {"topic":{"topic":"order-timeout","fence":1763000000000001}}
//! {"job":{"topic":"order-timeout","id":"7","state":"delayed","at":1763000002000,"metadata":{"delay":2000},"payload":{"order":7}}}
//! {"end":{"jobs":1}}
//! ```
//!
//! The first line is `export`, the last one `end`; a `topic` comes before its jobs, and `follow_ups` come behind all jobs. A line with a field that this version does not
//! know comes from a newer one and is refused.

use dq::job::{AppName, TopicName};
use serde::{Deserialize, Serialize};

use crate::follow_ups::FollowUpLine;
use crate::job_line::JobLine;

/// The form of the lines that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// The most bytes of a line: four times the longest payload that an add may have.
pub const MAX_LINE: usize = 64 << 20;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Export(Start),
    /// A topic, before its jobs.
    Topic(TopicLine),
    /// A job, or a broadcast that waits.
    Job(Box<JobLine>),
    /// Follow-ups that have not arrived, behind all jobs.
    FollowUps(FollowUpLine),
    /// The last line.
    End(End),
}

/// What the first line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The form of the lines.
    pub format: u32,
    /// The app that was exported.
    pub app: AppName,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicLine {
    /// Its name.
    pub topic: TopicName,
    /// The newest fence that it has given out.
    pub fence: u64,
}

/// What the last line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The number of lines with jobs.
    pub jobs: u64,
    /// The number of lines with follow-ups.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub follow_ups: u64,
}

impl End {
    /// Nothing.
    pub(crate) const NONE: Self = Self { jobs: 0, follow_ups: 0 };
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde needs it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
