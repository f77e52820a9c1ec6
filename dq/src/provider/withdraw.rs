//! Delete, cancel, ack and requeue from outside.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::call::{Call, call_many};
use super::error::{Reason, WithdrawError};
use super::lane::{Failed, Lane, Withdrawals};
use super::root::Root;
use crate::job::{BadName, Fence, JobId, TopicName};
use crate::store::{WithdrawOutcome, WithdrawVerb, Withdrawal};

/// A delete or cancel that is done when this is awaited. Cancel safety is as with [`Add`](super::Add).
#[must_use = "nothing is withdrawn until it is awaited"]
pub struct Withdraw(Step);

/// An ack or requeue that is done when this is awaited; it can be bound to one run of the job. Cancel safety is as with
/// [`Add`](super::Add).
#[must_use = "nothing is done until it is awaited"]
pub struct WithdrawRun(Withdraw);

enum Step {
    Bad(Option<WithdrawError>),
    Draft { root: Arc<Root>, lane: Arc<Lane>, withdrawal: Withdrawal },
    Called { call: Call<Withdrawals>, topic: TopicName, id: JobId },
}

impl Withdraw {
    pub(super) fn bad(error: BadName) -> Self {
        Self(Step::Bad(Some(error.into())))
    }

    pub(super) fn new(root: Arc<Root>, lane: Arc<Lane>, verb: WithdrawVerb, id: Result<JobId, BadName>) -> Self {
        match id {
            Ok(id) => Self(Step::Draft { root, lane, withdrawal: Withdrawal { verb, id, fence: None } }),
            Err(error) => Self::bad(error),
        }
    }
}

impl WithdrawRun {
    pub(super) const fn new(withdraw: Withdraw) -> Self {
        Self(withdraw)
    }

    /// Only to the run with this fence, as its handler read it from `job.fence()`; nothing is done to a later run. An ack
    /// with a fence does nothing to a job that waits.
    pub fn fence(mut self, fence: Fence) -> Self {
        if let Step::Draft { withdrawal, .. } = &mut self.0.0 {
            withdrawal.fence = Some(fence);
        }
        self
    }
}

impl Future for Withdraw {
    type Output = Result<WithdrawOutcome, WithdrawError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Step::Draft { .. } = &self.0
            && let Step::Draft { root, lane, withdrawal } = std::mem::replace(&mut self.0, Step::Bad(None))
        {
            let (topic, id) = (lane.key.topic.clone(), withdrawal.id.clone());
            self.0 = Step::Called { call: Call::new(&root, lane, withdrawal), topic, id };
        }
        match &mut self.0 {
            Step::Called { call, topic, id } => {
                let outcome = ready!(Pin::new(call).poll(cx));
                let told = told(topic, id, outcome);
                self.0 = Step::Bad(None);
                Poll::Ready(told)
            }
            Step::Bad(error) => Poll::Ready(Err(error.take().expect("it is not polled after it resolved"))),
            Step::Draft { .. } => unreachable!("a draft was started above"),
        }
    }
}

impl Future for WithdrawRun {
    type Output = Result<WithdrawOutcome, WithdrawError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// The same verb for many jobs, whose ids differ; an outcome for each.
pub(super) async fn withdraw_many(
    root: Arc<Root>,
    lane: Arc<Lane>,
    verb: WithdrawVerb,
    ids: Vec<JobId>,
) -> Vec<Result<WithdrawOutcome, WithdrawError>> {
    let topic = lane.key.topic.clone();
    let items = ids.iter().map(|id| Withdrawal { verb, id: id.clone(), fence: None }).collect();
    let outcomes = call_many::<Withdrawals>(root, lane, items).await;
    ids.iter().zip(outcomes).map(|(id, outcome)| told(&topic, id, outcome)).collect()
}

fn told(
    topic: &TopicName,
    id: &JobId,
    outcome: Result<WithdrawOutcome, Failed>,
) -> Result<WithdrawOutcome, WithdrawError> {
    let (topic, id) = (topic.clone(), id.clone());
    outcome.map_err(|failed| match failed {
        Failed::NotDone(Reason::Stopped) => WithdrawError::Stopped { topic, id },
        Failed::NotDone(reason) => WithdrawError::NotDone { topic, id, reason },
        Failed::Unknown(reason) => WithdrawError::Unknown { topic, id, reason },
    })
}

impl fmt::Debug for Withdraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Step::Bad(error) => f.debug_struct("Withdraw").field("error", error).finish(),
            Step::Draft { withdrawal, .. } => f.debug_tuple("Withdraw").field(withdrawal).finish(),
            Step::Called { topic, id, .. } => {
                f.debug_struct("Withdraw").field("topic", topic).field("id", id).finish_non_exhaustive()
            }
        }
    }
}

impl fmt::Debug for WithdrawRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
