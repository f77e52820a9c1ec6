//! Listeners: what users write to handle the jobs of a topic, and the erased form the contexts run.
//!
//! Generics end in `erased`: everything behind it knows a listener as `Arc<dyn ErasedListener>`.

mod channel;
mod delay_listener;
pub(crate) mod erased;
mod failure;
mod inject;
mod job;
mod registry;
mod settings;
mod topic_check;

pub use channel::{Channel, Decided, Decision};
pub use delay_listener::{Declared, DelayListener, RetryDelay, UnackedDecision};
pub use failure::{Failure, JobError, LONGEST_ERROR};
pub use inject::{Dependency, Injectable, Injector, Missing, Provided};
pub use job::{Delivery, Job};
pub use registry::{ListenerKind, Registration};
pub use settings::{AckMode, ListenerSettings, OnTimeout};

pub(crate) use registry::{Build, Built};
