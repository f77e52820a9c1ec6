//! Everything that a program needs to add and handle jobs: `use dq::prelude::*;`.
//!
//! An item of your own shadows one of these. If a glob import of another crate has the same name, write `dq::Channel`.

#[doc(no_inline)]
pub use crate::broadcast::{Broadcast, BroadcastListener};
#[doc(no_inline)]
pub use crate::context::{Context, ContextFactory};
#[doc(no_inline)]
pub use crate::job::DelayJob;
#[doc(no_inline)]
pub use crate::listener::{Batch, BatchListener};
#[doc(no_inline)]
pub use crate::listener::{Channel, Decided, Decision, DelayListener, Failure, Job, JobError, UnackedDecision};
#[doc(no_inline)]
pub use crate::provider::Provider;
#[doc(no_inline)]
pub use crate::{broadcast_listener, delay, delay_listener, periodic};
#[doc(no_inline)]
pub use dq_macros::DelayJob;
