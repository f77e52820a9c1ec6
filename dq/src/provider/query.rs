//! Queries, repeated until they succeed or `call_total` has passed. They run on dq's own thread, so that a caller needs no
//! timer.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::call::in_time;
use super::deferred::Deferred;
use super::error::{QueryError, Reason};
use super::limit;
use super::places::MOST_QUERIES;
use super::request::Deadline;
use super::retries::Retries;
use super::root::Root;
use crate::environment::{Environment, Runtime, panic_message};
use crate::job::{BadName, TopicKey};
use crate::store::{Store, StoreError};
use crate::time::{Delay, IntoDelay};

/// What a query does once it is awaited, in this time.
pub(super) type Ask<T> = Box<dyn FnOnce(Option<Duration>) -> BoxFuture<'static, Result<T, QueryError>> + Send>;

/// A query, sent when it is awaited. Made by `get` and `counts` of [`Provider`](super::Provider) and
/// [`TopicProvider`](super::TopicProvider). It changes nothing, so it is cancel safe and safe to repeat.
///
/// Resolves to what the store has, or to a [`QueryError`].
///
/// # Panics
/// When it is polled again after it resolved.
#[must_use = "a query asks nothing until it is awaited"]
pub struct Query<T>(Deferred<Draft<T>, QueryError, BoxFuture<'static, Result<T, QueryError>>>);

struct Draft<T> {
    ask: Ask<T>,
    within: Option<Delay>,
}

impl<T> Query<T> {
    pub(super) fn new(ask: Ask<T>) -> Self {
        Self(Deferred::new(Ok(Draft { ask, within: None })))
    }

    pub(super) fn bad(error: BadName) -> Self {
        Self(Deferred::new(Err(error.into())))
    }

    /// Sets how long this call may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or a
    /// text such as `"500ms"`, at most an hour.
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        if let Some(draft) = self.0.draft() {
            draft.within = Some(time.into_delay());
        }
        self
    }
}

impl<T> Future for Query<T> {
    type Output = Result<T, QueryError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let start = |Draft { ask, within }: Draft<T>| Ok(ask(limit::read(within).map_err(QueryError::BadWithin)?));
        self.0.started(start)?.as_mut().poll(cx)
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").finish_non_exhaustive()
    }
}

/// Asks the store until it answers. While 256 queries have no answer, further callers wait, in their order. Cancel safe: once
/// dropped, it sends no further query. `ask` gets the number of tries so far, to ask for less after each.
pub(super) async fn query<T: Send + 'static>(
    root: &Root,
    key: &TopicKey,
    within: Option<Duration>,
    ask: impl Fn(Arc<dyn Store>, TopicKey, u32) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
) -> Result<T, QueryError> {
    let deadline = root.deadline(within);
    let place = in_time(root, deadline, Arc::clone(&root.places.queries).acquire_owned()).await;
    let stopped = || QueryError::Stopped { topic: key.topic.clone() };
    let place = match place {
        Ok(place) => place,
        Err(Reason::Stopped) => return Err(stopped()),
        Err(_) => return Err(QueryError::Store { topic: key.topic.clone(), source: too_many(deadline) }),
    };
    let (mut reply, answer) = oneshot::channel();
    let (store, asked, retries) = (Arc::clone(&root.store), key.clone(), Retries::new(&root.settings));
    let (environment, restarts) = (root.environment.clone(), Arc::clone(&root.restarts));
    root.environment.spawn(Runtime::Own, async move {
        let _place = place;
        let answering = repeat(&environment, retries, deadline, |tries| ask(Arc::clone(&store), asked.clone(), tries));
        tokio::select! {
            biased;
            () = reply.closed() => {}
            answer = AssertUnwindSafe(answering).catch_unwind() => {
                let answer = answer.map_err(|panic| {
                    restarts.fetch_add(1, Relaxed);
                    let panic = panic_message(&*panic);
                    tracing::error!(topic = %asked.topic, panic, "dq panicked in a query; please report this as a bug");
                });
                // The caller may have dropped its future.
                let _ = reply.send(answer);
            }
        }
    });
    match answer.await {
        Ok(Ok(Ok(found))) => Ok(found),
        Ok(Err(())) => Err(QueryError::Panicked { topic: key.topic.clone() }),
        Ok(Ok(Err(source))) => Err(QueryError::Store { topic: key.topic.clone(), source }),
        Err(_) => Err(stopped()),
    }
}

async fn repeat<T>(
    environment: &Environment,
    mut retries: Retries,
    deadline: Deadline,
    ask: impl Fn(u32) -> BoxFuture<'static, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let over = deadline.at;
    if environment.now() >= over {
        return Err(too_many(deadline));
    }
    let (mut tries, mut last) = (0, None);
    loop {
        let began = environment.now();
        let (whole, rest) = (retries.call_timeout, over.saturating_sub(began));
        let (most, limit) = if whole <= rest { (whole, "call_timeout") } else { (rest, deadline.limit) };
        let answer = tokio::select! {
            biased;
            answer = ask(tries) => answer,
            // A last try that had less time says less than the one before.
            () = environment.sleep_until(began.saturating_add(most)) => match last {
                Some(error) if most < whole => return Err(error),
                _ => Err(unanswered(most, limit)),
            },
        };
        match answer {
            Err(error) if error.is_outage() => {
                let again = environment.now() + retries.pause_after_failure(environment);
                if again >= over {
                    return Err(error);
                }
                environment.sleep_until(again).await;
                (tries, last) = (tries + 1, Some(error));
            }
            other => return other,
        }
    }
}

/// What to look at when no answer comes.
const HANGS: &str =
    "does the server hang, are host and port in the URL right, and does a firewall let this program through?";

fn unanswered(waited: Duration, limit: &str) -> StoreError {
    let waited = humantime::format_duration(waited);
    StoreError::Unavailable { operation: "query", reason: format!("no answer within {waited} (`{limit}`): {HANGS}") }
}

fn too_many(Deadline { limit, .. }: Deadline) -> StoreError {
    let reason = format!("{MOST_QUERIES} earlier queries had no answer within `{limit}`");
    StoreError::NotSent { operation: "query", reason }
}
