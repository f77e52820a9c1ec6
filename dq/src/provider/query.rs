//! Reads: repeated until they work or the time is over. They run on dq's own thread, so a caller needs no timer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::error::QueryError;
use super::pace::Pace;
use super::root::Root;
use crate::environment::{Environment, Runtime};
use crate::job::TopicKey;
use crate::store::{Store, StoreError};

/// The answer of `ask`. Cancel safe: dropped, nothing more is asked.
pub(super) async fn query<T: Send + 'static>(
    root: &Root,
    key: &TopicKey,
    ask: impl Fn(Arc<dyn Store>, TopicKey) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
) -> Result<T, QueryError> {
    let (mut reply, answer) = oneshot::channel();
    let (store, asked, pace) = (Arc::clone(&root.store), key.clone(), Pace::new(&root.settings));
    let environment = root.environment.clone();
    root.environment.spawn(Runtime::Own, async move {
        let work = repeat(&environment, pace, || ask(Arc::clone(&store), asked.clone()));
        tokio::select! {
            biased;
            () = reply.closed() => {}
            seen = work => {
                // The caller may have gone away.
                let _ = reply.send(seen);
            }
        }
    });
    match answer.await {
        Ok(Ok(seen)) => Ok(seen),
        Ok(Err(source)) => Err(QueryError::Store { topic: key.topic.clone(), source }),
        Err(_) => Err(QueryError::Stopped { topic: key.topic.clone() }),
    }
}

async fn repeat<T>(
    environment: &Environment,
    mut pace: Pace,
    ask: impl Fn() -> BoxFuture<'static, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let over = environment.now().saturating_add(pace.call_total);
    loop {
        let call_timeout = environment.now().saturating_add(pace.call_timeout).min(over);
        let answer = tokio::select! {
            biased;
            answer = ask() => answer,
            () = environment.sleep_until(call_timeout) => Err(unanswered(pace.call_timeout)),
        };
        match answer {
            Err(error) if error.is_outage() => {
                let again = environment.now() + pace.pause(environment);
                if again >= over {
                    return Err(error);
                }
                environment.sleep_until(again).await;
            }
            other => return other,
        }
    }
}

fn unanswered(waited: Duration) -> StoreError {
    let waited = humantime::format_duration(waited);
    StoreError::Unavailable { operation: "look", reason: format!("no answer within {waited} (`call_timeout`)") }
}
