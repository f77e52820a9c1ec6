//! Whether the store answers, for orchestrators. They ask from anywhere and by any name, so neither the rate nor the host of a request
//! counts here; in exchange, an answer costs no query, or one a second at most.

use std::time::{Duration, Instant};

use dq::provider::{CallError, FailureReason};
use dq::{Provider, StoreError};
use tokio::sync::Mutex;

/// How long an answer of the store is good for.
const FRESH: Duration = Duration::from_secs(1);

/// The last answer to `/readyz`, and when the store gave it.
#[derive(Debug, Default)]
pub(crate) struct Ready(Mutex<Option<(Instant, bool)>>);

/// Whether a path is one of these.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

impl Ready {
    /// Asks the store, unless it has just been asked. Those who come meanwhile wait for the same answer.
    pub(crate) async fn of(&self, provider: &Provider) -> bool {
        let mut last = self.0.lock().await;
        if let Some((at, is_ready)) = *last
            && at.elapsed() < FRESH
        {
            return is_ready;
        }
        let is_ready = match provider.topic("dq-ready") {
            // Any topic will do, also one that holds nothing.
            // A key of a wrong type, or another version, is an answer.
            Ok(topic) => match topic.counts().within("2s").await {
                Ok(_) => true,
                Err(CallError::NotDone { reason: FailureReason::Store(error), .. }) => {
                    matches!(*error, StoreError::WrongType { .. } | StoreError::Version { .. })
                }
                Err(_) => false,
            },
            Err(_) => false,
        };
        *last = Some((Instant::now(), is_ready));
        is_ready
    }
}
