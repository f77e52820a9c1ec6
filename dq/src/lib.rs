//! Delayed jobs: add a job with a delay or a time, and dq runs it on one of your nodes when it is due.
//!
//! A job never runs early, runs at least once, is retried after a failure, and survives the death of the node that runs
//! it. Add dq with `cargo add dq`, and serde for your payloads with `cargo add serde -F derive`.
//!
//! ```standalone_crate
//! use dq::prelude::*;
//! use serde::{Deserialize, Serialize};
//! use tokio::sync::mpsc;
//!
//! // The payload of the job. The attribute names its topic, its usual delay and its id.
//! #[derive(Debug, Serialize, Deserialize, DelayJob)]
//! #[job(topic = "order-timeout", delay = "20ms")]
//! struct CloseOrder {
//!     #[job(id)]
//!     order: u64,
//! }
//!
//! // The listener of the topic. Every node that links it handles these jobs.
//! #[delay_listener(topic = "order-timeout")]
//! struct CloseOrders {
//!     closed: mpsc::Sender<u64>, // injected by its type, from `provide` below
//! }
//!
//! impl DelayListener for CloseOrders {
//!     type Job = CloseOrder;
//!
//!     async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
//!         self.closed.send(job.order).await?; // dq retries after an error
//!         Ok(channel.ack())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), dq::Error> {
//!     let (closed, mut orders) = mpsc::channel::<u64>(1);
//!     let dq = ContextFactory::new("shop").store("memory:").provide(closed).start().await?;
//!     dq.provider().add(CloseOrder { order: 7 }).await?; // due after 20 ms
//!     dq.provider().add(CloseOrder { order: 8 }).after("1h").await?;
//!     let (order, _) = dq.run_until(orders.recv()).await?; // a service calls `dq.run_until_signal()`
//!     assert_eq!(order.flatten(), Some(7));
//!     Ok(())
//! }
//! ```
//!
//! A listener can also be a function. dq injects its parameters, and `Ok(())` acks the job:
//!
//! ```
//! # use dq::prelude::*;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Debug, Serialize, Deserialize, DelayJob)]
//! # #[job(topic = "order-timeout")]
//! # struct CloseOrder { order: u64 }
//! #[delay_listener(concurrency = 64, timeout = "5s", retry = "1m, 5m, 10m")]
//! async fn close(job: Job<CloseOrder>, closed: tokio::sync::mpsc::Sender<u64>) -> Result<(), JobError> {
//!     closed.send(job.order).await?;
//!     Ok(())
//! }
//! ```
//!
//! # Concepts
//!
//! * A **job** has a payload, an id and a due time. The payload is a type with [`#[derive(DelayJob)]`](macro@DelayJob),
//!   which binds it to a **topic**. The id is unique within the topic: a second add with the same id is an error,
//!   unless the add says [`keep_existing`](provider::Call::keep_existing) or
//!   [`replace_existing`](provider::Call::replace_existing).
//! * A **listener** handles the jobs of one topic: a struct or function with
//!   [`#[delay_listener]`](macro@delay_listener). Listeners register automatically. A handler with a [`Channel`]
//!   returns its decision: [`ack`](Channel::ack) the job, [`rejoin_after`](Channel::rejoin_after) a delay without
//!   spending an attempt, or [`park`](Channel::park) it until [`Provider::ack`] or [`Provider::requeue`] comes from
//!   outside. After an error, a panic or a timeout, dq retries the job. When no attempt is left, the job is DEAD, and
//!   the store keeps it for you to inspect and requeue.
//! * A **node** is a running [`Context`]. A [`ContextFactory`] makes it from an app name, a store, the listeners and
//!   the values they need. Nodes with the same app and store share the work. Startup reports every configuration error
//!   with a fix.
//! * A [`Provider`] adds jobs, sends commands such as [`delete`](Provider::delete) and [`requeue`](Provider::requeue),
//!   and answers queries such as [`get`](Provider::get) and [`dead`](Provider::dead). [`Provider::topic`] does the same
//!   without the payload's type, and [`Provider::connect`] makes a provider without a node.
//! * A **broadcast** goes to every connected node that listens to it, at most once; see [`BroadcastListener`] and
//!   [`broadcast`](provider::Call::broadcast).
//! * The **store** keeps the jobs. [`ContextFactory::store`] takes its URL: `file:DIRECTORY` for one process, `redis://HOST` for
//!   many nodes. Jobs become due by the store's clock. Each run has a [`fence`](Job::fence), a number with which your
//!   own database can reject the writes of a run that lost its job.
//!
//! # At least once
//!
//! A job can run twice: when a node dies or stalls, another node runs the job again. Make handlers idempotent, or
//! compare the [`fence`](Job::fence) where you write.
//!
//! # Where to go from here
//!
//! * [`config`] lists every setting, and how to set it in an attribute, in code, in a file and by `DQ_*` variables.
//! * [`provider`] has the results and errors of adds, commands and queries. An error states whether the store certainly
//!   did nothing or whether that is unknown.
//! * [`Context::health`] reports the state of a node. dq logs through `tracing`: install a subscriber to see the log.
//!   It must not block, because dq calls it on its own thread, too.
//! * The module `testing` (feature `testing`) runs a node under virtual time.
//!
//! # Common mistakes
//!
//! * The linker drops a crate that the program never mentions, and its listeners with it. Mention the crate with
//!   `use my_handlers as _;`, and list the topics in [`ContextFactory::expect_topics`].
//! * A handler that blocks its thread also blocks other handlers. Put blocking work in `tokio::task::spawn_blocking`. Jobs
//!   whose handlers do not begin within two seconds go back without an attempt.
//! * [`Context::run_until_signal`] consumes the context. Clone the [`Provider`] first, which is cheap.

#[doc(hidden)]
pub mod broadcast;
pub mod config;
pub mod context;
#[doc(hidden)]
pub mod environment;
pub mod inspect;
pub mod job;
pub mod listener;
pub mod prelude;
mod private;
pub mod provider;
#[cfg(feature = "redis")]
pub mod redis;
pub mod schedule;
#[doc(hidden)]
pub mod store;
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;

pub use broadcast::{Broadcast, BroadcastListener};
#[doc(inline)]
pub use context::{Context, ContextFactory, Error};
#[doc(inline)]
pub use dq_macros::{DelayJob, broadcast_listener, delay, delay_listener, periodic};
#[doc(inline)]
pub use job::DelayJob;
#[doc(inline)]
pub use listener::{
    Batch, BatchListener, Channel, Decided, Decision, DelayListener, Failure, Job, JobError, UnackedDecision,
};
#[doc(inline)]
pub use provider::Provider;
pub use store::StoreError;

#[doc(hidden)]
pub mod __private {
    pub use crate::private::*;
}

extern crate self as dq; // generated code names `::dq`, also in this crate's own tests

#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../README.md")]
struct Readme;
