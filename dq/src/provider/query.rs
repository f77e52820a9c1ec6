//! Queries, repeated until they succeed or `call_total` has passed. They run on dq's own thread, so that a caller needs no
//! timer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::error::QueryError;
use super::retries::Retries;
use super::root::Root;
use crate::environment::{Environment, Runtime};
use crate::job::TopicKey;
use crate::store::{Store, StoreError};

/// Asks the store until it answers. Cancel safe: once dropped, it sends no further query. `ask` gets the number of tries so
/// far, to ask for less after each.
pub(super) async fn query<T: Send + 'static>(
    root: &Root,
    key: &TopicKey,
    ask: impl Fn(Arc<dyn Store>, TopicKey, u32) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
) -> Result<T, QueryError> {
    let (mut reply, answer) = oneshot::channel();
    let (store, asked, retries) = (Arc::clone(&root.store), key.clone(), Retries::new(&root.settings));
    let environment = root.environment.clone();
    root.environment.spawn(Runtime::Own, async move {
        let answering = repeat(&environment, retries, |tries| ask(Arc::clone(&store), asked.clone(), tries));
        tokio::select! {
            biased;
            () = reply.closed() => {}
            answer = answering => {
                // The caller may have dropped its future.
                let _ = reply.send(answer);
            }
        }
    });
    match answer.await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(source)) => Err(QueryError::Store { topic: key.topic.clone(), source }),
        Err(_) => Err(QueryError::Stopped { topic: key.topic.clone() }),
    }
}

async fn repeat<T>(
    environment: &Environment,
    mut retries: Retries,
    ask: impl Fn(u32) -> BoxFuture<'static, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let over = environment.now().saturating_add(retries.call_total);
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

fn unanswered(waited: Duration) -> StoreError {
    let waited = humantime::format_duration(waited);
    StoreError::Unavailable { operation: "query", reason: format!("no answer within {waited} (`call_timeout`)") }
}
