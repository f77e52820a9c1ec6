//! The settings and decisions of a listener. The traits and types that every listener uses are at the root of the
//! crate: [`DelayListener`], [`Job`], [`Channel`] and [`JobError`].
//!
//! What is hidden here serves the macros and dq itself, and may change with every version.

// Generics end in `erased`: the code behind it knows a listener as `Arc<dyn ErasedListener>`.

mod batch;
mod batch_listener;
mod channel;
mod control;
mod delay_listener;
mod erased;
mod erased_batch;
mod failure;
mod inject;
mod job;
mod next;
mod notes;
mod registry;
mod topic_check;

pub use delay_listener::{AckMode, OnTimeout, RetryDelay};
#[doc(hidden)]
pub use dq_grammar::BlockedBy;
pub use dq_grammar::OnBlocked;
pub use next::{FollowUp, FollowUpError, FollowUps};
pub use notes::CheckpointError;

#[doc(hidden)]
pub use batch::Batch;
#[doc(hidden)]
pub use batch_listener::BatchListener;
#[doc(hidden)]
pub use channel::{Channel, Decided, Decision};
#[doc(hidden)]
pub use control::RunControl;
#[doc(hidden)]
pub use delay_listener::{Declared, DelayListener, UnackedDecision};
pub(crate) use erased::decode;
#[doc(hidden)]
pub use erased::{ErasedBatches, ErasedListener, HandlerCall, Outcomes, Returned};
pub(crate) use failure::log_text;
#[doc(hidden)]
pub use failure::{Failure, JobError, MAX_ERROR};
#[doc(hidden)]
pub use inject::{Dependency, Injectable, Injector, Missing, Provided};
#[doc(hidden)]
pub use job::{Delivered, Job};
#[doc(hidden)]
pub use next::Drafts;
#[doc(hidden)]
pub use notes::Notes;
#[doc(hidden)]
pub use registry::{ListenerKind, Registration};

#[cfg(feature = "testing")]
pub(crate) use erased::returned;
pub(crate) use registry::{Build, Built};
