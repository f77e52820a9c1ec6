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
mod call;
mod coalescer;
mod error;
mod lane;
mod line;
mod look;
mod options;
mod pace;
mod pages;
mod payload;
mod root;
mod seen;
mod topic;
mod typed;
mod withdraw;

pub use add::Add;
pub use add_many::AddMany;
pub use added::{Added, Addition};
pub use error::{AddError, LookError, Reason, SweepError, WithdrawError};
pub use pages::{Pages, Swept};
pub use payload::IntoJson;
pub use seen::{Seen, UnreadablePayload};
pub use topic::TopicProvider;
pub use typed::Provider;
pub use withdraw::{Withdraw, WithdrawRun};

#[cfg(test)]
mod tests;
