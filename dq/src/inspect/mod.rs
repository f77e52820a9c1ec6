//! Looking at topics, jobs and nodes: what waits, what is going to fall due, and why a job has not run.
//!
//! [`Provider::inspect`](crate::Provider::inspect) gives an [`Inspector`]. It works alike on every store, and knows no payload
//! types. All its answers can be serialized: times are milliseconds since the Unix epoch, durations milliseconds. No answer has
//! payloads.
//!
//! Every read is bounded: a page has at most [`MAX_TOPICS`] topics or [`MAX_JOBS`] jobs, and a filter looks at no more than
//! [`MAX_LOOKED_AT`] jobs at once. A page says how far it looked, and where the next one continues. Reads show no one moment: what moves between two of
//! them may be missing or appear twice.
//!
//! ```no_run
//! # async fn look(provider: dq::Provider) -> Result<(), Box<dyn std::error::Error>> {
//! let inspector = provider.inspect();
//! println!("{}", inspector.why("order-timeout", "4711").await?);
//! for bucket in inspector.timeline("order-timeout").await?.minutes {
//!     println!("{} {}", bucket.from, bucket.jobs);
//! }
//! # Ok(())
//! # }
//! ```

mod bulk;
mod doctor;
mod filter;
mod groups;
mod history;
mod inspector;
mod job;
mod nodes;
mod past;
mod rates;
mod reason;
mod runs;
mod timeline;
mod topic;
mod why;

pub use bulk::{Bulk, BulkAction};
pub use doctor::{Doctor, DoctorProgress, Finding, FindingCode, MAX_FINDINGS, Repaired, Severity};
pub use filter::{JobFilter, JobsPage, MAX_JOBS};
pub use groups::{GroupSeat, GroupSummary, GroupsPage};
pub use history::HistoryEntry;
pub use inspector::{Inspector, MAX_LOOKED_AT, MAX_TOPICS};
pub use job::{JobSummary, OldestJob};
pub use nodes::NodesPage;
pub use past::{RunStats, StatsBucket, StatsBuckets};
pub use rates::Rates;
pub use reason::NotRunReason;
pub use timeline::{Bucket, Scale, Timeline};
pub use topic::{DueByPriority, NodeSummary, TopicSummary, TopicsPage};
pub use why::Why;

#[doc(no_inline)]
pub use crate::provider::Cursor;
