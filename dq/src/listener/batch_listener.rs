//! The trait that users implement for a topic whose jobs run in batches.

use std::future::Future;

use super::batch::Batch;
use super::channel::Decided;
use super::delay_listener::{Declared, RetryDelay, UnackedDecision, drop_unacked};
use super::failure::{Failure, JobError};
use super::job::Job;
use crate::job::DelayJob;

/// Handles the jobs of one topic in batches: for work that costs little more for many jobs than for one, such as a statement for
/// many rows. Annotate the struct with [`#[delay_listener(batch_size = 500)]`](macro@crate::delay_listener), and implement this trait
/// instead of [`DelayListener`](crate::DelayListener). A function with the attribute takes `batch: Batch<..>`.
///
/// ```
/// use std::sync::Arc;
///
/// use dq::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// # struct Orders;
/// # impl Orders { async fn close_all(&self, _: &[u64]) -> Result<Vec<u64>, std::fmt::Error> { Ok(vec![]) } }
/// #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "order-timeout", delay = "30m")]
/// struct CloseOrder {
///     #[job(id)]
///     order: u64,
/// }
///
/// #[delay_listener(batch_size = 500, concurrency = 2, timeout = "20s")]
/// struct CloseOrders {
///     orders: Arc<Orders>,
/// }
///
/// impl BatchListener for CloseOrders {
///     type Job = CloseOrder;
///
///     async fn on_batch(&self, batch: Batch<CloseOrder>) -> Result<Decided, JobError> {
///         let orders: Vec<u64> = batch.iter().map(|job| job.order).collect();
///         let unknown = self.orders.close_all(&orders).await?; // an error fails every job of the batch
///         for job in batch.iter().filter(|job| unknown.contains(&job.order)) {
///             batch.fail(job, "there is no such order");
///         }
///         Ok(batch.rest().ack())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is annotated with `#[delay_listener(batch_size = ..)]` but does not implement `BatchListener`",
    label = "has no handler for batches",
    note = "write `impl BatchListener for {Self} {{ type Job = ..; async fn on_batch(&self, batch: Batch<..>) -> Result<Decided, JobError> {{ Ok(batch.rest().ack()) }} }}`",
    note = "a listener that takes one job at a time has no `batch_size` in its attribute"
)]
pub trait BatchListener: Declared + Send + Sync + 'static {
    /// The payload; its `#[job(topic = "..")]` names the topic.
    type Job: DelayJob;

    /// Handles due jobs: those that are there, at most `batch_size` (100 by default) and at most `batch_bytes` (1 MiB) of records, and
    /// at least one. dq waits for nothing to fill a batch up.
    ///
    /// The batch decides single jobs at once. For all others what this returns is as for a single job: `Ok` with the decision of
    /// [`Batch::rest`], or an `Err`, a panic or a timeout as a failure. The batch takes one permit, and the timeout is that of the
    /// whole batch. A payload that does not decode fails its own job, and the batch runs without it. A job that ran in a process
    /// that died runs as a batch of one.
    fn on_batch(&self, batch: Batch<Self::Job>) -> impl Future<Output = Result<Decided, JobError>> + Send;

    /// Runs when no attempt is left for a job, as [`DelayListener::on_exhausted`](crate::DelayListener::on_exhausted): for one job
    /// at a time. The default does nothing.
    #[doc(alias = "final_retry")]
    fn on_exhausted(&self, job: Job<Self::Job>, cause: &Failure) -> impl Future<Output = ()> + Send {
        let _ = (job, cause);
        std::future::ready(())
    }

    /// Decides about a job that was UNACKED for too long, as
    /// [`DelayListener::on_park_timeout`](crate::DelayListener::on_park_timeout): for one job at a time. The default drops the job
    /// and logs a warning.
    #[doc(alias = "process_unacked")]
    fn on_park_timeout(&self, job: Job<Self::Job>) -> impl Future<Output = Result<UnackedDecision, JobError>> + Send {
        std::future::ready(Ok(drop_unacked(&job)))
    }

    /// A retry policy in code, as [`DelayListener::retry_delay`](crate::DelayListener::retry_delay). dq calls it for each job that
    /// failed: in [`Batch::fail`], and for the rest after the handler has failed. All calls for the rest together may take two
    /// seconds.
    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        let _ = (failed, failure);
        RetryDelay::NotWritten
    }
}
