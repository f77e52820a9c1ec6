//! A topic that the store could not serve when the node started, because a key of the topic has a wrong type (rule 1), or because
//! the store could not be reached and the program waits for it.
//!
//! The topic reports that in `health()` and the log, and asks again until the store serves it. Then it starts like any other.
//! Meanwhile everything else on the node runs, and the topic has claimed nothing.
//!
//! A topic whose settings say so also tells the store what to keep of histories, before it claims the first job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::watch;

use crate::context::condition::LiveCondition;
use crate::context::topic::StopOrder;
use crate::environment::Environment;
use crate::job::TopicKey;
use crate::store::answered_within;
use crate::store::{HistorySetting, Store};

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
    /// What the topic is to keep of the histories of its jobs; `None`: what it keeps.
    pub(super) history: Option<HistorySetting>,
}

impl Opening {
    /// Asks the store until it serves the topic, and until it knows what it keeps of histories; reports every error. Returns `false`
    /// if the node stops first.
    pub(super) async fn opened(mut self, condition: &LiveCondition) -> bool {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let mut failures = 0;
        while self.is_refused.load(Relaxed) {
            if !self.pauses(failures).await {
                return false;
            }
            match answered_within(&self.environment, self.call_timeout, "open", store.open(&key)).await {
                Ok(()) => {
                    tracing::info!(topic = %key.topic, "the store can serve the topic now; it starts");
                    self.is_refused.store(false, Relaxed);
                }
                Err(error) => {
                    failures += 1;
                    condition.store_error(&error);
                }
            }
        }
        let Some(setting) = self.history else { return true };
        failures = 0;
        loop {
            let kept = store.keep_history(&key, setting);
            match answered_within(&self.environment, self.call_timeout, "keep_history", kept).await {
                Ok(()) => return true,
                Err(error) if error.is_outage() => {
                    condition.store_error(&error);
                    if !self.pauses(failures).await {
                        return false;
                    }
                    failures += 1;
                }
                Err(error) => {
                    tracing::warn!(topic = %key.topic, %error, "the topic starts without its `history`");
                    return true;
                }
            }
        }
    }

    /// Waits before the store is asked again. Returns `false` if the node stops meanwhile.
    async fn pauses(&mut self, failures: u32) -> bool {
        if self.ordered.borrow_and_update().is_some() {
            return false;
        }
        let environment = &self.environment;
        let again = environment.now() + environment.growing_pause(FIRST_PAUSE, LONGEST_PAUSE, failures, 2);
        tokio::select! {
            biased;
            _ = self.ordered.changed() => false,
            () = environment.sleep_until(again) => true,
        }
    }
}
