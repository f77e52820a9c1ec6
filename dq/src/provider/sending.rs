//! What a call waits for: a place for its requests, a time, work on dq's own thread, and the answers to requests that go together.
//!
//! A request needs one of the `max_in_flight` places of its provider, and as many of its `max_in_flight_bytes` as it has. While
//! there are too few, callers wait in the order in which they came, at most until their deadline. That of earlier callers comes
//! first, unless a call sets its own time: only then it needs a timer while it waits, which runs on dq's own thread, because
//! callers may be on any executor.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{AcquireError, oneshot};

use super::error::{Failed, FailureReason, Target};
use super::request::{Answer, AnswerReceiver, Deadline, Posted, Request, not_done};
use super::root::{Caller, Root};
use crate::environment::{Environment, Runtime, Task, or_never, panic_message};

pub(super) const STOPPED: Answer = Err(Failed::NotDone(FailureReason::Stopped));

/// Waits for a place until the deadline.
pub(super) async fn in_time<T>(
    root: &Root,
    deadline: Deadline,
    place: impl Future<Output = Result<T, AcquireError>>,
) -> Result<T, FailureReason> {
    let has_own_limit = deadline.limit == Deadline::OF_THE_CALL;
    let too_late = or_never(has_own_limit.then(|| passed(&root.environment, deadline.at)));
    tokio::select! {
        biased;
        place = place => place.map_err(|_| FailureReason::Stopped),
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

/// Works on dq's own thread, because the caller may be on any executor, until there is an answer or the caller goes away.
pub(super) async fn on_own_thread<T: Send + 'static>(
    root: &Root,
    work: impl Future<Output = Result<T, Failed>> + Send + 'static,
) -> Result<T, Failed> {
    let (mut reply, answer) = oneshot::channel();
    let restarts = root.restarts.clone();
    root.environment.spawn(Runtime::Own, async move {
        tokio::select! {
            biased;
            () = reply.closed() => {}
            answer = AssertUnwindSafe(work).catch_unwind() => {
                let answer = answer.unwrap_or_else(|panic| {
                    restarts.fetch_add(1, Relaxed);
                    let panic = panic_message(&*panic);
                    tracing::error!(panic, "dq panicked in a call; please report this as a bug");
                    Err(Failed::Unknown(FailureReason::Panicked))
                });
                // The caller may have dropped its future.
                let _ = reply.send(answer);
            }
        }
    });
    // Without an answer dq's own thread has ended.
    answer.await.unwrap_or(Err(Failed::Unknown(FailureReason::Stopped)))
}

/// The answers to the requests of one call, which may be posted in parts, each with what its error is about.
#[derive(Default)]
pub(super) struct Calls(Vec<(Target, AnswerReceiver)>);

impl Calls {
    /// Posts these requests together, in order, behind the earlier ones. They take one place each, up to all places, and their
    /// bytes until the last of them is answered.
    pub(super) async fn post(&mut self, caller: &Caller, requests: Vec<Request>, deadline: Deadline) {
        let Caller { root, inbox, .. } = caller;
        let targets: Vec<_> = requests.iter().map(|request| request.target(caller.topic())).collect();
        let bytes = requests.iter().map(Request::bytes).sum();
        let mut place = match in_time(root, deadline, root.places.many(requests.len(), bytes)).await {
            Ok(place) => place,
            Err(reason) => {
                return self.0.extend(targets.into_iter().map(|target| (target, not_done(reason.clone()))));
            }
        };
        let mut leads = true;
        let post = |request| {
            let (mut posted, answer) = Posted::new(request, deadline, place());
            posted.leads = std::mem::take(&mut leads);
            (posted, answer)
        };
        let (posted, receivers): (Vec<_>, Vec<_>) = requests.into_iter().map(post).unzip();
        drop(place);
        self.0.extend(targets.into_iter().zip(receivers));
        root.post(inbox, posted);
    }

    /// The answer to each request, in order.
    pub(super) async fn answers(self) -> Vec<(Target, Answer)> {
        let mut answers = Vec::with_capacity(self.0.len());
        for (target, receiver) in self.0 {
            answers.push((target, receiver.await.unwrap_or(STOPPED)));
        }
        answers
    }
}

/// Sends one request, and waits for its answer.
pub(super) async fn call_one(caller: &Caller, request: Request, deadline: Deadline) -> (Target, Answer) {
    let mut calls = Calls::default();
    calls.post(caller, vec![request], deadline).await;
    calls.answers().await.remove(0)
}

/// Posts all `requests` together, in order, and returns the answer to each.
pub(super) async fn call_many(
    caller: &Caller,
    requests: Vec<Request>,
    within: Option<Duration>,
) -> Vec<(Target, Answer)> {
    let mut calls = Calls::default();
    calls.post(caller, requests, caller.root.deadline(within)).await;
    calls.answers().await
}
