//! dq runs work later: annotate a handler struct, add jobs with a delay, and they run when due on one of many nodes,
//! never early, at least once.

pub mod broadcast;
pub mod config;
pub mod context;
pub mod environment;
pub mod job;
pub mod listener;
pub mod prelude;
mod private;
pub mod provider;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;

pub use broadcast::{Broadcast, BroadcastListener};
pub use context::{Context, ContextFactory, Error};
pub use dq_macros::{DelayJob, broadcast_listener, delay, delay_listener};
pub use job::DelayJob;
pub use listener::{Channel, Decided, Decision, DelayListener, Failure, Job, JobError, UnackedDecision};
pub use provider::Provider;

#[doc(hidden)]
pub mod __private {
    pub use crate::private::*;
}

extern crate self as dq; // generated code says `::dq`, also in this crate's own tests
