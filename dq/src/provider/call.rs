//! A request of a caller, from its first poll to its answer.
//!
//! A request needs one of the `unanswered_limit` places of its provider, and as many of its `unanswered_bytes` as it has. While
//! there are too few, callers wait in the order in which they came, at most until their deadline. That of earlier callers comes
//! first, unless a call sets its own time: only then it needs a timer while it waits, which runs on dq's own thread, because
//! callers may be on any executor.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{AcquireError, oneshot};

use super::error::Reason;
use super::inbox::Inbox;
use super::request::{Answer, AnswerReceiver, Deadline, Failed, Posted, Request, not_done};
use super::root::Root;
use crate::environment::{Environment, Runtime, Task};
use crate::job::JobId;

const STOPPED: Answer = Err(Failed::NotDone(Reason::Stopped));

/// Resolves to the answer of one request. Dropped before the request is sent, it takes the request back.
pub(super) struct Call {
    pub(super) inbox: Arc<Inbox>,
    pub(super) id: JobId,
    progress: Progress,
}

enum Progress {
    /// Too few places are free: posts the request once there is one.
    Waiting(BoxFuture<'static, Result<AnswerReceiver, Failed>>),
    Posted(AnswerReceiver),
}

impl Call {
    /// Posts the request, or waits for a place.
    pub(super) fn new(root: Arc<Root>, inbox: Arc<Inbox>, request: Request, within: Option<Duration>) -> Self {
        let (id, deadline, bytes) = (request.id().clone(), root.deadline(within), request.bytes());
        let post = move |root: &Root, inbox: &Arc<Inbox>, place| {
            let (posted, answer) = Posted::new(request, deadline, place);
            root.post(inbox, [posted]);
            answer
        };
        let progress = if let Some(place) = root.places.try_one(bytes) {
            Progress::Posted(post(&root, &inbox, place))
        } else {
            let inbox = Arc::clone(&inbox);
            Progress::Waiting(Box::pin(async move {
                let place = in_time(&root, deadline, root.places.one(bytes)).await.map_err(Failed::NotDone)?;
                Ok(post(&root, &inbox, place))
            }))
        };
        Self { inbox, id, progress }
    }
}

/// Waits for a place until the deadline.
pub(super) async fn in_time<T>(
    root: &Root,
    deadline: Deadline,
    place: impl Future<Output = Result<T, AcquireError>>,
) -> Result<T, Reason> {
    let too_late = async {
        if deadline.limit != Deadline::OF_THE_CALL {
            return pending().await;
        }
        passed(&root.environment, deadline.at).await;
    };
    tokio::select! {
        biased;
        place = place => place.map_err(|_| Reason::Stopped),
        () = too_late => Err(deadline.never_sent()),
    }
}

/// Waits until this time of the node's clock, on any executor.
pub(super) async fn passed(environment: &Environment, at: Duration) {
    struct Timer(Task);
    impl Drop for Timer {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let (rings, rang) = oneshot::channel::<()>();
    let sleep = environment.sleep_until(at);
    let _timer = Timer(environment.spawn(Runtime::Own, async move {
        sleep.await;
        drop(rings);
    }));
    // Its end is the signal, and so is the end of dq's own thread.
    let _ = rang.await;
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

/// The answers to the requests of one call, which may be posted in parts.
#[derive(Default)]
pub(super) struct Calls(Vec<AnswerReceiver>);

impl Calls {
    /// Posts these requests together, in order, behind the earlier ones. They take one place each, up to all places, and their
    /// bytes until the last of them is answered.
    pub(super) async fn post(&mut self, root: &Root, inbox: &Arc<Inbox>, requests: Vec<Request>, deadline: Deadline) {
        let bytes = requests.iter().map(Request::bytes).sum();
        let mut place = match in_time(root, deadline, root.places.many(requests.len(), bytes)).await {
            Ok(place) => place,
            Err(reason) => return self.0.extend(requests.iter().map(|_| not_done(reason.clone()))),
        };
        let mut leads = true;
        let post = |request| {
            let (mut posted, answer) = Posted::new(request, deadline, place());
            posted.leads = std::mem::take(&mut leads);
            (posted, answer)
        };
        let (posted, receivers): (Vec<_>, Vec<_>) = requests.into_iter().map(post).unzip();
        drop(place);
        self.0.extend(receivers);
        root.post(inbox, posted);
    }

    /// The answer to each request, in order.
    pub(super) async fn answers(self) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(self.0.len());
        for receiver in self.0 {
            answers.push(receiver.await.unwrap_or(STOPPED));
        }
        answers
    }
}

/// Posts all `requests` together, in order, and returns the answer to each.
pub(super) async fn call_many(
    root: &Root,
    inbox: &Arc<Inbox>,
    requests: Vec<Request>,
    within: Option<Duration>,
) -> Vec<Answer> {
    let mut calls = Calls::default();
    calls.post(root, inbox, requests, root.deadline(within)).await;
    calls.answers().await
}
