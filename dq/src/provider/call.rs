//! A request of a caller, from its first poll to its answer.
//!
//! A request needs one of the `unanswered_limit` places of its provider. While all are taken, callers wait in the order in
//! which they came, at most until their deadline.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use super::error::Reason;
use super::inbox::Inbox;
use super::request::{Answer, AnswerReceiver, Failed, Posted, Request};
use super::root::Root;
use crate::job::JobId;

const STOPPED: Answer = Err(Failed::NotDone(Reason::Stopped));

/// Resolves to the answer of one request. Dropped before the request is sent, it takes the request back.
pub(super) struct Call {
    pub(super) inbox: Arc<Inbox>,
    pub(super) id: JobId,
    progress: Progress,
}

enum Progress {
    /// All places are taken: posts the request once one is free.
    Waiting(BoxFuture<'static, Result<AnswerReceiver, Failed>>),
    Posted(AnswerReceiver),
}

impl Call {
    /// Posts the request, or waits for a place.
    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>, request: Request) -> Self {
        let (id, deadline) = (request.id().clone(), root.deadline());
        let post = move |root: &Root, inbox: &Arc<Inbox>, place| {
            let (posted, answer) = Posted::new(request, deadline, Some(place));
            root.post(inbox, [posted]);
            answer
        };
        let progress = if let Ok(place) = Arc::clone(&root.unanswered).try_acquire_owned() {
            Progress::Posted(post(&root, &inbox, place))
        } else {
            let inbox = Arc::clone(&inbox);
            Progress::Waiting(Box::pin(async move { Ok(post(&root, &inbox, places(&root, 1).await?)) }))
        };
        Self { inbox, id, progress }
    }
}

impl Future for Call {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        loop {
            match &mut self.progress {
                Progress::Posted(answer) => return Pin::new(answer).poll(cx).map(|answer| answer.unwrap_or(STOPPED)),
                Progress::Waiting(posted) => self.progress = Progress::Posted(ready!(posted.as_mut().poll(cx))?),
            }
        }
    }
}

/// Posts all `requests` together, in order, and returns the answer to each. They take one place each, up to all places.
pub(super) async fn call_many(root: &Root, inbox: &Arc<Inbox>, requests: Vec<Request>) -> Vec<Answer> {
    let deadline = root.deadline();
    let wanted = u32::try_from(requests.len().min(root.unanswered_limit())).unwrap_or(u32::MAX);
    let mut places = match places(root, wanted).await {
        Ok(places) => places,
        Err(failed) => return requests.iter().map(|_| Err(failed.clone())).collect(),
    };
    let post = |request| Posted::new(request, deadline, places.split(1));
    let (posted, receivers): (Vec<_>, Vec<_>) = requests.into_iter().map(post).unzip();
    root.post(inbox, posted);
    let mut answers = Vec::with_capacity(receivers.len());
    for receiver in receivers {
        answers.push(receiver.await.unwrap_or(STOPPED));
    }
    answers
}

/// Waits for places. This needs no timer: each taken place belongs to an earlier caller, whose deadline is earlier and
/// frees it.
async fn places(root: &Root, wanted: u32) -> Result<OwnedSemaphorePermit, Failed> {
    let places = Arc::clone(&root.unanswered).acquire_many_owned(wanted).await;
    places.map_err(|_| Failed::NotDone(Reason::Stopped))
}
