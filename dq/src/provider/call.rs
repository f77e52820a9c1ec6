//! One request of a caller, from its first poll to its answer.
//!
//! A request needs one of the `unanswered_limit` places of its provider; while all are taken, callers wait in the order in
//! which they came, at most until their time is over.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use super::error::Reason;
use super::inbox::{AnswerReceiver, Failed, Inbox, Reply, RequestKind};
use super::root::Root;

/// Resolves to the outcome of one request. Dropped, it is not sent any more if it was not yet.
pub(super) struct Call<K: RequestKind>(Step<K>);

enum Step<K: RequestKind> {
    Waiting { permit: BoxFuture<'static, Result<OwnedSemaphorePermit, Failed>>, root: Arc<Root>, work: Batched<K> },
    Posted(AnswerReceiver<K::Outcome>),
    Over,
}

struct Batched<K: RequestKind> {
    inbox: Arc<Inbox>,
    item: K::Item,
    deadline: Duration,
}

impl<K: RequestKind> Batched<K> {
    fn post(self, root: &Root, permit: OwnedSemaphorePermit) -> Step<K> {
        let (reply, answer) = Reply::new(self.deadline, Some(permit));
        root.post(&self.inbox, [K::entry(self.item, reply)]);
        Step::Posted(answer)
    }
}

impl<K: RequestKind> Call<K> {
    /// Posts the request, or gets in line for a place.
    pub(super) fn new(root: &Arc<Root>, inbox: Arc<Inbox>, item: K::Item) -> Self {
        let work = Batched { inbox, item, deadline: root.deadline() };
        Self(match Arc::clone(&root.unanswered).try_acquire_owned() {
            Ok(permit) => work.post(root, permit),
            Err(_) => Step::Waiting { permit: wait_for_places(root, 1), root: Arc::clone(root), work },
        })
    }
}

impl<K: RequestKind> Future for Call<K> {
    type Output = Result<K::Outcome, Failed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.0 {
                Step::Posted(answer) => {
                    let answered = std::task::ready!(Pin::new(answer).poll(cx));
                    self.0 = Step::Over;
                    return Poll::Ready(answered.unwrap_or(Err(Failed::NotDone(Reason::Stopped))));
                }
                Step::Waiting { permit, .. } => {
                    let permit = std::task::ready!(permit.as_mut().poll(cx));
                    let Step::Waiting { root, work, .. } = std::mem::replace(&mut self.0, Step::Over) else {
                        unreachable!("the step was just looked at")
                    };
                    match permit {
                        Ok(permit) => self.0 = work.post(&root, permit),
                        Err(failed) => return Poll::Ready(Err(failed)),
                    }
                }
                Step::Over => panic!("polled after it resolved"),
            }
        }
    }
}

/// All of `items` together, in order; an outcome for each. They take as many places as there are at the most.
pub(super) async fn call_many<K: RequestKind>(
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    items: Vec<K::Item>,
) -> Vec<Result<K::Outcome, Failed>> {
    let deadline = root.deadline();
    let places = u32::try_from(items.len().min(root.unanswered_limit())).unwrap_or(u32::MAX);
    let mut permits = match wait_for_places(&root, places).await {
        Ok(permits) => permits,
        Err(failed) => return items.iter().map(|_| Err(failed.clone())).collect(),
    };
    let mut answers = Vec::with_capacity(items.len());
    let entries: Vec<_> = items
        .into_iter()
        .map(|item| {
            let (reply, answer) = Reply::new(deadline, permits.split(1));
            answers.push(answer);
            K::entry(item, reply)
        })
        .collect();
    root.post(&inbox, entries);
    let mut outcomes = Vec::with_capacity(answers.len());
    for answer in answers {
        outcomes.push(answer.await.unwrap_or(Err(Failed::NotDone(Reason::Stopped))));
    }
    outcomes
}

/// Places for requests. No timer is needed: whoever holds one came earlier, so his time is over earlier.
fn wait_for_places(root: &Root, places: u32) -> BoxFuture<'static, Result<OwnedSemaphorePermit, Failed>> {
    let acquired = Arc::clone(&root.unanswered).acquire_many_owned(places);
    Box::pin(async move { acquired.await.map_err(|_| Failed::NotDone(Reason::Stopped)) })
}
