//! Adding jobs, commands for jobs, and queries.
//!
//! A program holds a [`Provider`]. Each add and each command becomes a request in the *inbox* of its topic. The topic's one
//! task, the *coalescer*, sends the requests as numbered batches of one kind and answers each caller:
//!
//! ```text
//!   Call<Add>, Call<Change>, … ── places ──▶ inbox ──▶ batches ──▶ up to 16 in flight ──▶ store
//!        ▲                                                                                  │
//!        └──────────────────────── outcome, or why there is none ◀──────────────────────────┘
//! ```
//!
//! The coalescer sends the requests of an inbox in the order in which callers first poll their futures. While the store
//! answers, they also take effect in that order. A request that fails is repeated until the caller's deadline, which is
//! `call_deadline` after the first poll; then the error distinguishes *not done* from *unknown*. Queries (`get`, lists, counts)
//! go to the store directly, 256 at a time. `request` has all bounds.

mod add;
mod added;
mod batch;
mod buffer;
mod call;
mod change;
mod coalescer;
mod command;
mod define;
mod definitions;
mod error;
mod events;
mod group;
mod guard;
mod inbox;
mod inputs;
mod invalid;
mod job_set;
mod no_result;
mod of_payload;
mod options;
mod pages;
mod query;
mod reads;
mod refused;
mod request;
mod results;
mod retries;
mod root;
mod schedule;
mod schedule_change;
mod seat;
mod seen;
mod sending;
mod setting;
mod store_now;
mod topic;
mod typed;

pub use add::{Add, AddMany};
pub use added::{Added, AddedHow, AddedMany, AddedOrKept, Extending};
pub use buffer::BufferHealth;
pub(crate) use buffer::{Bounds, Buffer};
pub use call::{Call, Verb};
pub use change::{Change, ChangeMany, Changed, JobOptions};
#[doc(hidden)]
pub use command::CommandAnswer;
pub use command::{AckedOrRequeued, JobCommand};
pub(crate) use define::CodeSchedule;
pub(crate) use definitions::{AheadSchedule, Definitions};
pub use error::{CallError, FailureReason, Invalid, Refusal, Target};
pub use events::{Event, Events};
pub use group::ResumedGroup;
pub use inputs::IntoWhen;
#[doc(hidden)]
pub use inputs::{IntoJson, When};
pub use job_set::{AddMembers, CloseSet, JobSet};
pub use no_result::NoResult;
pub use options::Adds;
pub use pages::{BulkResult, JobPages, SchedulePages};
pub use query::Query;
pub use refused::RefusedJob;
pub(crate) use refused::{MAX_SHOWN, show_last};
pub use schedule::{AddSchedule, ScheduleAdded};
pub use schedule_change::ChangeSchedule;
pub use seen::{JobInfo, ScheduleDetails, ScheduleInfo, ScheduleOrigin, UnreadablePayload};
pub use setting::{ChangeTopic, TopicChanged};
#[doc(hidden)]
pub use store_now::DefinitionsWake;
pub use topic::TopicProvider;
#[doc(hidden)] // documented at the root
pub use typed::Provider;

pub use crate::store::{
    ACKED_HEADER, CommandOutcome, Cursor, DEAD_HEADER, Drain, JobSetSummary, LEFT_HEADER, Limit, LimitKind, OnDead,
    Pause, SetCounts, SetRefusal, SetState, TopicCounts, TopicDelay, TopicLimit, TopicState, Transition,
};

#[cfg(test)]
mod tests;
