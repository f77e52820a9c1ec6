//! The trait that users implement for a topic.

use std::future::Future;

use super::channel::{Channel, Decided};
use super::failure::{Failure, JobError};
use super::inject::{Dependency, Injector, Missing};
use super::job::Job;
use super::settings::ListenerSettings;
use crate::job::{DelayJob, RetryPolicy};

/// What `#[delay_listener]` writes for a struct or function; not to be written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` implements `DelayListener` but is not annotated",
    label = "would never be registered",
    note = "write `#[delay_listener]` above the struct; it registers the listener and injects its fields"
)]
pub trait Declared: Sized {
    /// The name of the struct or function.
    const NAME: &'static str;
    /// Where it is annotated, as `src/orders.rs:12`.
    const DECLARED_AT: &'static str;
    /// The topic that the attribute names, if it does.
    const TOPIC: Option<&'static str>;
    /// What the attribute says.
    const SETTINGS: ListenerSettings;

    /// What it needs.
    fn dependencies() -> Vec<Dependency>;

    /// Makes one from what was provided.
    ///
    /// # Errors
    /// [`Missing`] for the first value that was not provided.
    fn inject(injector: &Injector) -> Result<Self, Missing>;
}

/// Handles the jobs of one topic. Annotate the struct with `#[delay_listener]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is annotated with `#[delay_listener]` but does not implement `DelayListener`",
    label = "has no handler",
    note = "write `impl DelayListener for {Self} {{ type Job = ..; async fn on_due(&self, job: Job<..>, channel: Channel) -> Result<Decided, JobError> {{ Ok(channel.ack()) }} }}`"
)]
pub trait DelayListener: Declared + Send + Sync + 'static {
    /// The payload; its `#[job(topic = "..")]` names the topic.
    type Job: DelayJob;

    /// Called when a job is due, on one node, at least once.
    ///
    /// `Ok` with the channel's decision settles the job; an `Err`, a panic or a timeout is a failure and goes by the retry
    /// policy. The future is dropped when the timeout passes: what must not be cut belongs into `tokio::spawn`. A handler
    /// that blocks its thread cannot be dropped; use `tokio::task::spawn_blocking` for such work.
    fn on_due(&self, job: Job<Self::Job>, channel: Channel) -> impl Future<Output = Result<Decided, JobError>> + Send;

    /// Called once no attempt is left, before the job goes to DEAD; at least once, also if a node dies in between.
    ///
    /// It runs under the topic's timeout. However it ends, the job is DEAD afterwards. Unless overridden it logs a warning.
    fn final_retry(&self, job: Job<Self::Job>, cause: &Failure) -> impl Future<Output = ()> + Send {
        tracing::warn!(topic = Self::Job::TOPIC, job.id = %job.id(), cause = %cause.cause, "given up: the job is DEAD");
        std::future::ready(())
    }

    /// Called when a job has been UNACKED for its age (7 days by default), on one node.
    ///
    /// An error, a panic or a timeout keeps the job for another period. Unless overridden the job is dropped, with a
    /// warning.
    fn process_unacked(&self, job: Job<Self::Job>) -> impl Future<Output = Result<UnackedDecision, JobError>> + Send {
        tracing::warn!(topic = Self::Job::TOPIC, job.id = %job.id(), "nobody told its outcome: the UNACKED job is dropped");
        std::future::ready(Ok(UnackedDecision::Drop))
    }

    /// A retry policy that a text cannot say; goes before the attribute's, but not before an add's own.
    ///
    /// Asked after each failure, with the number of failed runs so far (the first time 1): the delay before the next run,
    /// or that the job is exhausted. It is called on dq's own thread: it must be quick and must not block. One that panics
    /// counts as [`RetryDelay::BySettings`], which is the default.
    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        let _ = (failed, failure);
        RetryDelay::BySettings
    }
}

/// What a listener's own retry policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryDelay {
    /// What the settings of the topic say.
    BySettings,
    /// What this policy says.
    By(RetryPolicy),
    /// After this; what is longer than ten years is ten years.
    After(std::time::Duration),
    /// No attempt is left.
    Exhausted,
}

/// What to do with a job that was UNACKED for its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnackedDecision {
    /// Forget it.
    Drop,
    /// Leave it UNACKED for another period.
    Keep,
    /// Run it again: counts as a retry, with its backoff.
    Retry,
}
