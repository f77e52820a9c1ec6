//! The batch of a handler, made by a test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fakes::FakeJob;
use crate::DelayJob;
use crate::job::JobId;
use crate::listener::Outcomes;
use crate::listener::Returned;
use crate::listener::{Batch, Decision, Failure};

/// Makes a batch for a handler, and what tells how the handler decides its jobs: first attempts that are due now, with the ids
/// of their payloads (or `test-0`, `test-1`, ..).
///
/// ```
/// # use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "order-timeout")]
/// struct CloseOrder { #[job(id)] order: u64 }
///
/// async fn close(batch: Batch<CloseOrder>) -> Result<(), JobError> {
///     for job in batch.iter().filter(|job| job.order == 7) {
///         batch.fail(job, "locked");
///     }
///     Ok(()) // acks the others
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (batch, decisions) = dq::testing::batch([6, 7].map(|order| CloseOrder { order }));
/// close(batch).await.unwrap();
/// let decided = decisions.list();
/// assert_eq!(decided[0], None); // the handler left it to what it returned
/// assert_eq!(decided[1].as_ref().unwrap().as_ref().unwrap_err().message, "locked");
/// # }
/// ```
///
/// # Panics
/// If the topic or an id of the payloads is not valid.
pub fn batch<P: DelayJob>(payloads: impl IntoIterator<Item = P>) -> (Batch<P>, BatchDecisions) {
    let jobs = payloads.into_iter().enumerate().map(|(place, payload)| {
        let id = payload.job_id().unwrap_or_else(|| JobId::new(format!("test-{place}")));
        let id = id.expect("the id of the payload is valid");
        FakeJob::new(payload).id(id.as_str()).build_at(place)
    });
    let jobs: Vec<_> = jobs.collect();
    let decisions = BatchDecisions(Arc::new(Noted(Mutex::new(vec![None; jobs.len()]))));
    (Batch::new(jobs, decisions.0.clone(), Arc::default()), decisions)
}

/// What a handler has decided about the jobs of a [`batch`].
#[derive(Debug, Clone)]
pub struct BatchDecisions(Arc<Noted>);

impl BatchDecisions {
    /// The decision, or the failure, of each job in the order of the payloads; `None`: it was left to what the handler returns.
    pub fn list(&self) -> Vec<Option<Result<Decision, Failure>>> {
        self.0.noted().clone()
    }
}

/// The first outcome of each job.
#[derive(Debug)]
struct Noted(Mutex<Vec<Option<Result<Decision, Failure>>>>);

impl Noted {
    fn noted(&self) -> MutexGuard<'_, Vec<Option<Result<Decision, Failure>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outcomes for Noted {
    fn ended(&self, place: usize, returned: Returned) -> bool {
        let mut noted = self.noted();
        let Some(job) = noted.get_mut(place).filter(|job| job.is_none()) else { return false };
        *job = match returned {
            Returned::Decided(decision) | Returned::Keeping(decision, _) => Some(Ok(decision)),
            Returned::Followed(..) => Some(Ok(Decision::Ack)),
            Returned::Failed(failure) => Some(Err(failure)),
            Returned::FinalRetried(_) | Returned::Unacked(_) => None, // no batch ends so
        };
        true
    }
}
