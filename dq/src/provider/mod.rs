//! Adding jobs, commands for jobs, and queries.
//!
//! A program holds a [`Provider`]. Each add and each command becomes a request in the *inbox* of its topic. The topic's one
//! task, the *coalescer*, sends the requests as numbered batches of one kind and answers each caller:
//!
//! ```text
//!   Add, DeleteOrCancel, … ── places ──▶ inbox ──▶ batches ──▶ up to 16 in flight ──▶ store
//!        ▲                                                                                  │
//!        └──────────────────────── outcome, or why there is none ◀──────────────────────────┘
//! ```
//!
//! The coalescer sends the requests of an inbox in the order in which callers first poll their futures. While the store
//! answers, they also take effect in that order. A request that fails is repeated until the caller's deadline, which is
//! `call_total` after the first poll; then the error distinguishes *not done* from *unknown*. Queries (`get`, lists, counts)
//! go to the store directly, 256 at a time. `places` has all bounds.

mod add;
mod add_many;
mod added;
mod added_many;
mod batch;
mod call;
mod change;
mod change_error;
mod change_many;
mod coalescer;
mod command;
mod deferred;
pub(crate) mod define;
#[cfg(feature = "metrics")]
mod depths;
mod error;
mod events;
mod examining;
mod extend;
mod guard;
mod inbox;
mod limit;
mod meter;
mod options;
mod pages;
mod payload;
mod places;
mod query;
mod queue;
mod reads;
mod request;
mod restart;
mod retries;
mod root;
mod schedule;
mod schedule_change;
mod schedule_error;
mod schedule_pages;
mod seat;
mod seen;
mod seen_schedule;
mod setting;
mod topic;
mod topic_error;
pub(crate) mod typed;
mod upload;
mod verbs;
mod when;

pub use add::Add;
pub use add_many::AddMany;
pub use added::{Added, AddedOrKept, Addition};
pub use added_many::AddedMany;
pub use change::{ChangeJob, Changed};
pub use change_error::{ChangeError, ChangeRefusal};
pub use change_many::ChangeMany;
pub use command::{AckOrRequeue, AckedOrRequeued, DeleteOrCancel};
pub use error::{AddError, CommandError, QueryError, Reason, SweepError};
pub use events::{Event, Events};
pub use extend::{AddOrExtend, AddOrExtendMany};
pub use limit::BadWithin;
pub use pages::{Pages, Swept};
#[doc(hidden)]
pub use payload::IntoJson;
pub use query::Query;
pub use schedule::{AddSchedule, ScheduleAdded};
pub use schedule_change::ChangeSchedule;
pub use schedule_error::ScheduleError;
pub use schedule_pages::Schedules;
pub use seen::{Seen, UnreadablePayload};
pub use seen_schedule::{ScheduleDetails, ScheduleOrigin, SeenSchedule};
pub use setting::{ChangeTopic, DrainTopic, PauseTopic, TopicChanged, TopicSetting};
pub use topic::TopicProvider;
pub use topic_error::TopicError;
#[doc(hidden)] // documented at the root
pub use typed::Provider;
#[doc(hidden)]
pub use when::When;

pub use when::IntoWhen;

pub use crate::store::{CommandOutcome, Cursor, Drain, JobMove, JobPlace, Pause, TopicCounts, TopicDelay, TopicState};

#[cfg(test)]
mod tests;
