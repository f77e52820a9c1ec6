//! A topic that the store could not serve when the node started, because a key of the topic has a wrong type (rule 1), or because
//! the store could not be reached and the program waits for it.
//!
//! The topic reports that in `health()` and the log, and asks again until the store serves it. Then it starts like any other.
//! Meanwhile everything else on the node runs, and the topic has claimed nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::watch;

use crate::context::topic::shutdown::StopOrder;
use crate::environment::Environment;
use crate::job::TopicKey;
use crate::store::{Store, StoreError};

/// The longest pause before the store is asked for the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before the store is asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A topic that its task may have to wait for.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub(super) store: Arc<dyn Store>,
    pub(super) key: TopicKey,
    pub(super) environment: Environment,
    pub(super) call_timeout: Duration,
    pub(super) ordered: watch::Receiver<StopOrder>,
    /// Whether the store does not serve the topic yet. A task that starts again shares this with the one before.
    pub(super) is_refused: Arc<AtomicBool>,
}

impl Opening {
    /// Asks the store until it serves the topic, and reports every error. Returns `false` if the node stops first.
    pub(super) async fn opened(mut self, store_error: impl Fn(&StoreError)) -> bool {
        let (store, key, environment) = (&self.store, &self.key, &self.environment);
        let mut failures = 0;
        while self.is_refused.load(Relaxed) {
            if *self.ordered.borrow_and_update() != StopOrder::Continue {
                return false;
            }
            let again = environment.now() + environment.growing_pause(FIRST_PAUSE, LONGEST_PAUSE, failures, 2);
            tokio::select! {
                biased;
                _ = self.ordered.changed() => return false,
                () = environment.sleep_until(again) => {}
            }
            let too_late = environment.sleep_until(environment.now() + self.call_timeout);
            let answer = tokio::select! {
                biased;
                answer = store.open(key) => answer,
                () = too_late => Err(StoreError::Unavailable { operation: "open", reason: "no answer in time".into() }),
            };
            match answer {
                Ok(()) => {
                    tracing::info!(topic = %key.topic, "the store can serve the topic now; it starts");
                    self.is_refused.store(false, Relaxed);
                }
                Err(error) => {
                    failures += 1;
                    store_error(&error);
                }
            }
        }
        true
    }
}
