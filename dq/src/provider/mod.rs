//! Adding jobs and looking after them.
//!
//! A [`Provider`] is what users hold. What they ask for becomes one entry of a *lane*, one for each topic; the lane's one
//! task, the *coalescer*, sends what has come together as numbered batches and answers each caller:
//!
//! ```text
//!   Add, Withdraw ── a place of `unanswered_limit` ──▶ lane ──▶ line of batches ──▶ up to 16 flying ──▶ store
//!        ▲                                                                               │
//!        └───────────────────────────── answer, or what is known ◀───────────────────────┘
//! ```
//!
//! Entries of a lane are sent in the order in which they were left, which is the order in which the futures are first
//! polled. While the store answers they also take effect in that order. What fails is repeated until the caller's time is
//! over; then the caller is told whether it is certain that nothing was done. Looks (`get`, lists, counts) go to the store
//! directly.

mod add;
mod add_many;
mod added;
mod batch;
mod batches;
mod call;
mod coalescer;
mod command;
mod error;
mod inbox;
mod options;
mod pace;
mod pages;
mod payload;
mod query;
mod root;
mod seen;
mod topic;
pub(crate) mod typed;

pub use add::Add;
pub use add_many::AddMany;
pub use added::{Added, Addition};
pub use command::{SendCommand, SendRunCommand};
pub use error::{AddError, CommandError, QueryError, Reason, SweepError};
pub use pages::{Pages, Swept};
#[doc(hidden)]
pub use payload::IntoJson;
pub use seen::{Seen, UnreadablePayload};
pub use topic::TopicProvider;
#[doc(hidden)] // documented at the root
pub use typed::Provider;

pub use crate::store::{CommandOutcome, Cursor, JobPlace, TopicCounts};

#[cfg(test)]
mod tests;
