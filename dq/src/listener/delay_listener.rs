//! The trait that users implement for a topic, and what its answers and settings choose from.

use std::future::Future;

use super::channel::{Channel, Decided};
use super::failure::{Failure, JobError};
use super::inject::{Dependency, Injector, Missing};
use super::job::Job;
use crate::job::{DelayJob, RetryPolicy};

/// Implemented by `#[delay_listener]`; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` implements `DelayListener` but is not annotated",
    label = "would never be registered",
    note = "write `#[delay_listener]` above the struct; it registers the listener and injects its fields"
)]
pub trait Declared: Sized {
    /// The name of the struct or function.
    const NAME: &'static str;
    /// The file and line of the attribute, for example `src/orders.rs:12`.
    const DECLARED_AT: &'static str;
    /// The topic that the attribute names, if any.
    const TOPIC: Option<&'static str>;
    /// The settings in the attribute, each with its value as a config file writes it, without quotes.
    const SETTINGS: &'static [(&'static str, &'static str)];
    /// `false` for a function, which has no `retry_delay`: dq asks none, and waits for none.
    const MAY_HAVE_RETRY_DELAY: bool = true;

    /// The values it needs.
    fn dependencies() -> Vec<Dependency>;

    /// Makes a listener from the values that the program provided.
    ///
    /// # Errors
    /// [`Missing`] for the first value that was not provided.
    fn inject(injector: &Injector) -> Result<Self, Missing>;
}

/// Handles the jobs of one topic. Annotate the struct with [`#[delay_listener]`](macro@crate::delay_listener) and
/// implement this trait for it. For a listener that needs only [`on_due`](Self::on_due), annotate a function instead.
///
/// ```
/// use std::sync::Arc;
///
/// use dq::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// # struct Orders;
/// # impl Orders { async fn close(&self, _: u64) -> Result<(), std::fmt::Error> { Ok(()) } }
/// #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "order-timeout", delay = "30m")]
/// struct CloseOrder {
///     #[job(id)]
///     order: u64,
/// }
///
/// #[delay_listener(topic = "order-timeout", timeout = "5s", retry = "1m, 5m, 10m")]
/// struct CloseOrders {
///     orders: Arc<Orders>, // injected: `ContextFactory::provide` gives it
/// }
///
/// impl DelayListener for CloseOrders {
///     type Job = CloseOrder;
///
///     async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
///         self.orders.close(job.order).await?; // dq retries after an error
///         Ok(channel.ack())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is annotated with `#[delay_listener]` but does not implement `DelayListener`",
    label = "has no handler",
    note = "write `impl DelayListener for {Self} {{ type Job = ..; async fn on_due(&self, job: Job<..>, channel: Channel) -> Result<Decided, JobError> {{ Ok(channel.ack()) }} }}`",
    note = "for batches write `#[delay_listener(batch_size = 500)]`, and `.batch_listener::<..>()` where the factory names it"
)]
pub trait DelayListener: Declared + Send + Sync + 'static {
    /// The payload; its `#[job(topic = "..")]` names the topic.
    type Job: DelayJob;

    /// Handles a due job. dq calls it on one node, at least once for each job.
    ///
    /// `Ok` with the channel's decision settles the job. An `Err`, a panic or a timeout is a failure, and the retry
    /// policy decides what follows. The timeout counts from the first poll of the future; if your runtime does not poll it
    /// within two seconds, the job goes back without an attempt. dq drops the future when the timeout passes: put work that
    /// must not be cut in `tokio::spawn`. dq cannot drop a handler that blocks its thread: put blocking work in
    /// `tokio::task::spawn_blocking`.
    fn on_due(&self, job: Job<Self::Job>, channel: Channel) -> impl Future<Output = Result<Decided, JobError>> + Send;

    /// Runs when no attempt is left, before the job becomes DEAD: at least once, even if a node dies meanwhile.
    ///
    /// The topic's timeout applies. However this call ends, the job is DEAD afterwards, and dq logs that as an error. The
    /// default does nothing.
    #[doc(alias = "final_retry")]
    fn on_exhausted(&self, job: Job<Self::Job>, cause: &Failure) -> impl Future<Output = ()> + Send {
        let _ = (job, cause);
        std::future::ready(())
    }

    /// Decides about a job that has been UNACKED for the topic's `park_timeout` (7 days by default). dq calls it on one
    /// node.
    ///
    /// An error, a panic or a timeout keeps the job for another period. The default drops the job and logs a warning.
    #[doc(alias = "process_unacked")]
    fn on_park_timeout(&self, job: Job<Self::Job>) -> impl Future<Output = Result<UnackedDecision, JobError>> + Send {
        std::future::ready(Ok(drop_unacked(&job)))
    }

    /// A retry policy in code. It overrides the policy of the attribute, but not the policy of the add.
    ///
    /// dq calls it after each failure but a [fatal](JobError::fatal) one, with the number of failed runs so far (1 after the
    /// first). [`Failure::downcast_ref`] has the error that the handler returned. It returns the delay
    /// before the next run, or that the job is exhausted. It runs on your runtime: in the task of the handler that failed, or
    /// in a task of its own after a timeout. If it panics, or has not returned after two seconds, dq uses
    /// [`RetryDelay::BySettings`], and logs a warning. The default says that nobody wrote one: the settings decide.
    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        let _ = (failed, failure);
        RetryDelay::NotWritten
    }
}

/// What a listener without an `on_park_timeout` does.
pub(super) fn drop_unacked<J: DelayJob>(job: &Job<J>) -> UnackedDecision {
    tracing::warn!(topic = %J::TOPIC, job.id = %job.id(), "no ack or requeue came: the UNACKED job is dropped");
    UnackedDecision::Drop
}

/// The answer of [`DelayListener::retry_delay`](crate::DelayListener::retry_delay): when a failed job runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryDelay {
    /// By the policy in the settings of the topic.
    BySettings,
    /// By this policy.
    By(RetryPolicy),
    /// After this delay, cut to ten years.
    After(std::time::Duration),
    /// Never: no attempt is left.
    Exhausted,
    /// The listener has no `retry_delay`, so the policy in the settings counts.
    #[doc(hidden)]
    NotWritten,
}

/// What to do with a job that has been UNACKED for too long; see
/// [`DelayListener::on_park_timeout`](crate::DelayListener::on_park_timeout).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnackedDecision {
    /// Remove the job.
    Drop,
    /// Leave the job UNACKED for another period.
    Keep,
    /// Run the job again, after the delay of the retry policy. This spends an attempt.
    Retry,
}

/// What happens after a handler's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// A retry by the retry policy, as after any failure.
    #[default]
    Retry,
    /// A retry at once. It spends an attempt.
    Immediate,
}

/// When dq acks a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum AckMode {
    /// When its handler has returned: the job runs at least once.
    #[default]
    OnReturn,
    /// Before its handler starts: the job runs at most once. A node that dies loses the jobs it holds, and dq retries
    /// none.
    OnClaim,
}
