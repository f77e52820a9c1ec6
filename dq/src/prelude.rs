//! What a program that adds and handles jobs needs: `use dq::prelude::*;`.
//!
//! A name of your own goes before one of these; where another crate's glob has the same name, write `dq::Channel`.

pub use crate::broadcast::{Broadcast, BroadcastListener};
pub use crate::context::{Context, ContextFactory};
pub use crate::job::DelayJob;
pub use crate::listener::{Channel, Decided, Decision, DelayListener, Failure, Job, JobError, UnackedDecision};
pub use crate::provider::Provider;
pub use crate::{broadcast_listener, delay, delay_listener};
pub use dq_macros::DelayJob;
