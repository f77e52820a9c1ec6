//! Queries, repeated until they succeed or `call_deadline` has passed. They run on dq's own thread, so that a caller needs no
//! timer. A wait for a result is one to its caller; [`results`](super::results) does it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::call::{Call, Started, Verb};
use super::error::{CallError, Doing, Failed, FailureReason, Target};
use super::no_result::NoResult;
use super::request::{Deadline, MAX_QUERIES};
use super::retries::{Retries, repeat};
use super::root::{Caller, Root};
use super::sending::{in_time, on_own_thread};
use crate::job::{InvalidName, JobId, TopicKey};
use crate::store::{Store, StoreError, no_answer};

/// Reads something of the store, such as [`get`](super::Provider::get) and [`counts`](super::Provider::counts), or waits for it as
/// [`result`](super::Provider::result) does. It changes nothing, so it is cancel safe and safe to repeat.
pub struct Query<T>(Ask<T>);

/// A request to the store, on its way.
pub(super) type Asking<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

type Ask<T> = Box<dyn FnOnce(Option<Duration>) -> BoxFuture<'static, Result<T, CallError>> + Send>;

impl<T: Send + 'static> Call<Query<T>> {
    /// A query of a topic, whose answer `read` makes ready for the caller.
    pub(super) fn query<A: Send + 'static, R: Send + Sync + 'static>(
        caller: Caller,
        request: R,
        ask: impl for<'a> Fn(&'a dyn Store, &'a TopicKey, &'a R, u32) -> Asking<'a, A> + Send + Sync + 'static,
        read: impl FnOnce(A) -> T + Send + 'static,
    ) -> Self {
        Self::reading(move |within| async move {
            query(&caller.root, caller.target(Doing::Query), within, request, ask).await.map(read)
        })
    }
}

impl<T: 'static> Call<Query<T>> {
    /// Work of its own that reads, with the time that the call sets for itself.
    pub(super) fn reading<W: Future<Output = Result<T, CallError>> + Send + 'static>(
        work: impl FnOnce(Option<Duration>) -> W + Send + 'static,
    ) -> Self {
        Self::new(Query(Box::new(|within| Box::pin(work(within)))))
    }
}

impl<R: DeserializeOwned + Send + 'static> Call<Query<R>> {
    /// Waits for the result of a job.
    pub(super) fn result(caller: Caller, id: Result<JobId, InvalidName>) -> Self {
        id.map_or_else(Self::bad, |id| Self::reading(move |within| result(caller, id, within)))
    }
}

async fn result<R: DeserializeOwned>(caller: Caller, id: JobId, within: Option<Duration>) -> Result<R, CallError> {
    let target = Target { id: Some(id.clone()), ..caller.target(Doing::Query) };
    let (now, deadline) = (caller.environment().now(), caller.root.deadline(within));
    let why = match caller.inbox.results.wait(|| caller.source(), id, now, deadline.at).await {
        Ok(Ok(result)) => match result.decode() {
            Ok(result) => return Ok(result),
            Err(error) => NoResult::Decode(error),
        },
        Ok(Err(why)) => why,
        Err(reason) => return Err(CallError::failed(target, Failed::NotDone(reason))),
    };
    Err(CallError::NoResult { target, why: Box::new(why) })
}

impl<T: 'static> Verb for Query<T> {
    type Output = T;

    fn start(self, within: Option<Duration>) -> Result<Started<T>, CallError> {
        Ok(Started::work((self.0)(within)))
    }
}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").finish_non_exhaustive()
    }
}

/// Asks the store until it answers. While 256 queries have no answer, further callers wait, in their order. Cancel safe: once
/// dropped, it sends nothing further. `target` says what the caller is doing: a request that changes something may have been executed
/// though no answer came. `ask` gets the request, and the number of tries so far, to ask for less after each.
pub(super) async fn query<T: Send + 'static, R: Send + Sync + 'static>(
    root: &Root,
    target: Target,
    within: Option<Duration>,
    request: R,
    ask: impl for<'a> Fn(&'a dyn Store, &'a TopicKey, &'a R, u32) -> Asking<'a, T> + Send + Sync + 'static,
) -> Result<T, CallError> {
    let deadline = root.deadline(within);
    let place = match in_time(root, deadline, Arc::clone(&root.places.queries).acquire_owned()).await {
        Ok(place) => place,
        Err(FailureReason::NeverSent { .. }) => return Err(CallError::failed(target, too_many(deadline))),
        Err(other) => return Err(CallError::failed(target, Failed::NotDone(other))),
    };
    let key = TopicKey { app: root.app.clone(), topic: target.topic.clone() };
    let (store, retries, changes) = (Arc::clone(&root.store), Retries::new(&root.settings), !target.is_query());
    let environment = root.environment.clone();
    let work = async move {
        let _place = place;
        if environment.now() >= deadline.at {
            return Err(too_many(deadline));
        }
        repeat(&environment, retries, deadline, changes, |tries| ask(&*store, &key, &request, tries), unanswered).await
    };
    on_own_thread(root, work).await.map_err(|failed| CallError::failed(target, failed))
}

/// What to look at when no answer comes.
const HANGS: &str =
    "does the server hang, are host and port in the URL right, and does a firewall let this program through?";

fn unanswered(waited: Duration, limit: &str) -> StoreError {
    StoreError::Unavailable { operation: "query", reason: format!("{}: {HANGS}", no_answer(waited, Some(limit))) }
}

fn too_many(Deadline { limit, .. }: Deadline) -> Failed {
    let reason = format!("{MAX_QUERIES} earlier queries had no answer within `{limit}`");
    Failed::NotDone(FailureReason::Store(Arc::new(StoreError::NotSent { operation: "query", reason })))
}
