//! Queries, repeated until they succeed or `call_total` has passed. They run on dq's own thread, so that a caller needs no
//! timer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::error::QueryError;
use super::places::MOST_QUERIES;
use super::retries::Retries;
use super::root::Root;
use crate::environment::{Environment, Runtime, panic_message};
use crate::job::TopicKey;
use crate::store::{Store, StoreError};

/// Asks the store until it answers. While 256 queries have no answer, further callers wait, in their order. Cancel safe: once
/// dropped, it sends no further query. `ask` gets the number of tries so far, to ask for less after each.
pub(super) async fn query<T: Send + 'static>(
    root: &Root,
    key: &TopicKey,
    ask: impl Fn(Arc<dyn Store>, TopicKey, u32) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
) -> Result<T, QueryError> {
    let over = root.deadline();
    let place = Arc::clone(&root.places.queries).acquire_owned().await;
    let stopped = || QueryError::Stopped { topic: key.topic.clone() };
    let place = place.map_err(|_| stopped())?;
    let (mut reply, answer) = oneshot::channel();
    let (store, asked, retries) = (Arc::clone(&root.store), key.clone(), Retries::new(&root.settings));
    let (environment, restarts) = (root.environment.clone(), Arc::clone(&root.restarts));
    root.environment.spawn(Runtime::Own, async move {
        let _place = place;
        let answering = repeat(&environment, retries, over, |tries| ask(Arc::clone(&store), asked.clone(), tries));
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
    over: Duration,
    ask: impl Fn(u32) -> BoxFuture<'static, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    if environment.now() >= over {
        let reason = format!("{MOST_QUERIES} earlier queries had no answer within `call_total`");
        return Err(StoreError::NotSent { operation: "query", reason });
    }
    let mut tries = 0;
    loop {
        let call_timeout = environment.now().saturating_add(retries.call_timeout).min(over);
        let answer = tokio::select! {
            biased;
            answer = ask(tries) => answer,
            () = environment.sleep_until(call_timeout) => Err(unanswered(retries.call_timeout)),
        };
        match answer {
            Err(error) if error.is_outage() => {
                let again = environment.now() + retries.pause_after_failure(environment);
                if again >= over {
                    return Err(error);
                }
                environment.sleep_until(again).await;
                tries += 1;
            }
            other => return other,
        }
    }
}

/// What to look at when no answer comes.
const HANGS: &str =
    "does the server hang, are host and port in the URL right, and does a firewall let this program through?";

fn unanswered(waited: Duration) -> StoreError {
    let waited = humantime::format_duration(waited);
    StoreError::Unavailable {
        operation: "query",
        reason: format!("no answer within {waited} (`call_timeout`): {HANGS}"),
    }
}
