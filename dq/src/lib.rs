//! Delayed jobs: add a job with a delay or a time, and it runs when it is due on one of your nodes, never early, at least
//! once, with retries, and without being lost when a node dies.
//!
//! ```standalone_crate
//! use dq::prelude::*;
//! use serde::{Deserialize, Serialize}; // `cargo add serde -F derive`
//!
//! #[derive(Debug, Serialize, Deserialize, DelayJob)]
//! #[job(topic = "order-timeout", delay = "20ms")]
//! struct CloseOrder {
//!     #[job(id)]
//!     order: u64,
//! }
//!
//! #[delay_listener(concurrency = 64, timeout = "5s", retry = "1m, 5m, 10m")]
//! async fn close(job: Job<CloseOrder>, done: tokio::sync::mpsc::Sender<u64>) -> Result<(), JobError> {
//!     done.send(job.order).await?; // an error is retried
//!     Ok(()) // is the ack
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), dq::Error> {
//!     let (done, mut closed) = tokio::sync::mpsc::channel::<u64>(1);
//!     let dq = ContextFactory::new("shop").store("memory:").provide(done).start().await?;
//!     dq.provider().add(CloseOrder { order: 7 }).await?;
//!     dq.provider().add(CloseOrder { order: 8 }).after("1h").await?;
//!     let order = dq.run_until(closed.recv()).await?; // or `run_until_signal()`; both end the node cleanly
//!     assert_eq!(order.flatten(), Some(7));
//!     Ok(())
//! }
//! ```
//!
//! # The ideas
//!
//! * A **payload** is a type with [`#[derive(DelayJob)]`](macro@DelayJob), which binds it to a **topic** and says its usual
//!   delay and its id. Within a topic an id names one job: added again it is an error, unless the add says
//!   [`keep_existing`](provider::Add::keep_existing) or [`replace_existing`](provider::Add::replace_existing).
//! * A **listener** handles the jobs of one topic: a function or a struct under
//!   [`#[delay_listener]`](macro@delay_listener), found by itself, its parameters or fields injected by their types from
//!   [`provide`](ContextFactory::provide). A handler that takes a [`Channel`] returns what becomes of the job:
//!   [`ack`](Channel::ack), [`rejoin_after`](Channel::rejoin_after) (later again, no attempt spent) or
//!   [`park`](Channel::park) (UNACKED, until [`Provider::ack`] or [`Provider::requeue`] from outside). An error, a panic or
//!   a timeout is a failure: it is retried, and when no attempt is left the job is DEAD, and kept.
//! * A **node** is a running [`Context`], made by a [`ContextFactory`]: an app, a store, its listeners. Nodes that have the
//!   app and the store in common share the work. What is wrong with one is a text at start that says what to write.
//! * A [`Provider`] adds jobs and looks after them: [`delete`](Provider::delete), [`get`](Provider::get), lists as
//!   [`dead`](Provider::dead), [`requeue`](Provider::requeue). [`Provider::topic`] does it without the payload's type,
//!   [`Provider::connect`] without a node.
//! * A **broadcast** goes to every connected node that listens, at most once:
//!   [`#[broadcast_listener]`](macro@broadcast_listener), and [`broadcast`](provider::Add::broadcast) of an add.
//! * The **store** is a URL ([`ContextFactory::store`]). It owns the clock by which jobs are due. Each run of a job has a
//!   [`fence`](Job::fence), and the outcome of a run that lost its job is refused.
//!
//! # Where to read on
//!
//! * [`config`]: every setting, in attributes, code, a file and `DQ_*` variables.
//! * `testing`: a hand-cranked clock and fakes, behind the feature `testing`.
//! * [`Context::health`] tells how a node is. dq logs through `tracing`: without a subscriber it is silent.
//! * A program that has a listener in another crate mentions it, or it is not linked: `use my_handlers as _;`.
//! * A handler that blocks its thread belongs into `tokio::task::spawn_blocking`; one that only borrows the
//!   [`Provider`] of a node clones it first, which is cheap.

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

#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../README.md")]
struct Readme;
