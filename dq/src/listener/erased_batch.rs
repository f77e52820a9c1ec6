//! A listener that takes batches, without its payload type.

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use super::batch::Batch;
use super::batch_listener::BatchListener;
use super::channel::Decision;
use super::control::RunControl;
use super::delay_listener::RetryDelay;
use super::erased::{Asked, ErasedBatches, ErasedListener, HandlerCall, Outcomes, Returned, decode, returned, unacked};
use super::failure::Failure;
use super::job::{Delivered, Job};
use crate::job::Record;

pub(super) struct ErasedBatch<L>(L, Asked);

impl<L: BatchListener> ErasedBatch<L> {
    pub(super) const fn new(listener: L) -> Self {
        Self(listener, Asked::new(L::MAY_HAVE_RETRY_DELAY))
    }
}

impl<L> fmt::Debug for ErasedBatch<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<L>())
    }
}

impl<L: BatchListener> ErasedListener for ErasedBatch<L> {
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivered) -> BoxFuture<'static, Returned> {
        Box::pin(async move {
            if call == HandlerCall::OnDue {
                return self.call_one(record, delivery).await;
            }
            let payload = match decode(&record) {
                Ok(payload) => payload,
                Err(failure) => return Returned::Failed(failure),
            };
            drop(record);
            let run = Arc::clone(&delivery.run);
            let job = Job::new(payload, delivery);
            if let HandlerCall::OnExhausted(failure) = call {
                run.allow_next();
                self.0.on_exhausted(job, &failure).await;
                return Returned::FinalRetried(run.take_next());
            }
            unacked(self.0.on_park_timeout(job).await)
        })
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        self.1.learn(self.0.retry_delay(failed, failure))
    }

    fn may_have_retry_delay(&self) -> bool {
        self.1.may_be_written()
    }

    fn batches(self: Arc<Self>) -> Option<Arc<dyn ErasedBatches>> {
        Some(self)
    }
}

impl<L: BatchListener> ErasedBatches for ErasedBatch<L> {
    fn call_batch(
        self: Arc<Self>,
        jobs: Vec<(Record, Delivered)>,
        outcomes: Arc<dyn Outcomes>,
        run: Arc<RunControl>,
    ) -> BoxFuture<'static, Returned> {
        Box::pin(async move {
            let mut decoded = Vec::with_capacity(jobs.len());
            for (place, (record, delivery)) in jobs.into_iter().enumerate() {
                match decode(&record) {
                    Ok(payload) => decoded.push(Job::of_batch(payload, delivery, place)),
                    Err(failure) => drop(outcomes.ended(place, Returned::Failed(failure))),
                }
            }
            if decoded.is_empty() {
                return Returned::Decided(Decision::Ack); // of no job
            }
            returned(self.0.on_batch(Batch::new(decoded, outcomes, run)).await)
        })
    }
}

impl<L: BatchListener> ErasedBatch<L> {
    async fn call_one(self: Arc<Self>, record: Record, delivery: Delivered) -> Returned {
        let (only, run) = (Arc::<Only>::default(), delivery.run.clone());
        let rest = self.call_batch(vec![(record, delivery)], only.clone(), run).await;
        only.0.get().cloned().unwrap_or(rest)
    }
}

/// The outcome of the only job of a batch.
#[derive(Debug, Default)]
struct Only(OnceLock<Returned>);

impl Outcomes for Only {
    fn ended(&self, _: usize, returned: Returned) -> bool {
        self.0.set(returned).is_ok()
    }
}
