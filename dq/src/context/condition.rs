//! What a topic or channel is doing. Its task writes the condition, `health()` reads it.

use std::mem::discriminant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

use crate::store::{Outage, Party, StoreError, WARNING_PAUSE};

/// What a topic or a broadcast channel is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "error")]
#[non_exhaustive]
pub enum Condition {
    /// The store has not answered yet.
    #[default]
    Starting,
    /// It works.
    Working,
    /// The store cannot be reached, or refuses requests for a while; dq goes on trying. The error.
    Recovering(String),
    /// An operator must change the store or the program before it goes on. The error.
    Stopped(String),
    /// It is stopping, or has stopped.
    Stopping,
}

/// What the task of a topic or of a broadcast channel keeps up to date.
pub(super) trait TaskStats: Send + Sync {
    fn condition(&self) -> &LiveCondition;

    /// Counts that the task starts again after a panic of dq itself.
    fn count_restart(&self);
}

/// The condition of a topic or channel. Once it is [`Condition::Stopping`] it stays so.
#[derive(Debug)]
pub(super) struct LiveCondition {
    pub(super) topic: String,
    now: Mutex<Condition>,
    /// Notified when the condition changes.
    changed: Arc<Notify>,
    /// Its part in the outages of the node.
    party: Party,
    /// The log has said that this topic alone is stopped.
    warned: Mutex<Warned>,
}

impl LiveCondition {
    pub(super) fn new(topic: String, outage: &Outage) -> Self {
        let (now, warned) = (Mutex::new(Condition::Starting), Mutex::default());
        Self { topic, now, changed: outage.changed(), party: outage.party(), warned }
    }

    /// A condition is always valid, so dq ignores that a lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The condition. It has no answer of the store to lose while it asks nothing, so it also recovers while others of its node
    /// find the store out of reach.
    pub(super) fn read(&self) -> Condition {
        let now = self.lock().clone();
        match self.party.cut_off() {
            Some(error) if now == Condition::Working => Condition::Recovering(error),
            _ => now,
        }
    }

    /// The node's clock.
    pub(super) fn now(&self) -> Duration {
        self.party.now()
    }

    pub(super) fn set(&self, condition: Condition) {
        let mut now = self.lock();
        if condition == Condition::Stopping {
            self.party.rests();
        }
        if *now != Condition::Stopping && *now != condition {
            *now = condition;
            self.changed.notify_waiters();
        }
    }

    /// The task starts again after a panic of dq itself.
    pub(super) fn restarted(&self, panic: &str) {
        self.set(Condition::Recovering(format!("dq panicked: {panic}")));
    }

    /// The store has answered.
    pub(super) fn contact(&self) {
        let was = self.lock().clone();
        if !matches!(was, Condition::Working | Condition::Stopping) {
            self.set(Condition::Working);
        }
        self.party.answered();
        let topic = &self.topic;
        match was {
            Condition::Recovering(_) | Condition::Stopped(_) if self.warned().take() => {
                tracing::info!(topic, "the topic works again");
            }
            Condition::Recovering(_) | Condition::Stopped(_) => tracing::debug!(topic, "the store answers again"),
            Condition::Starting | Condition::Working | Condition::Stopping => {}
        }
    }

    /// The store has not answered, or has refused a request.
    pub(super) fn store_error(&self, error: &StoreError) {
        let text = error.to_string();
        let next = if error.is_outage() { Condition::Recovering(text) } else { Condition::Stopped(text) };
        let is_news = discriminant(&*self.lock()) != discriminant(&next);
        self.set(next);
        if error.is_of_topic() {
            return self.stopped_alone(error, is_news);
        }
        self.party.failed(error);
        if *self.lock() == Condition::Stopping {
            self.party.rests(); // nobody waits for its next answer
        }
    }

    fn warned(&self) -> MutexGuard<'_, Warned> {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only this topic is stopped: the log says so once, and then once a minute.
    fn stopped_alone(&self, error: &StoreError, is_news: bool) {
        let mut warned = self.warned();
        if is_news {
            warned.take();
        }
        if warned.is_due(self.party.now()) {
            tracing::warn!(topic = self.topic, %error, "this topic is stopped until the cause is fixed; dq keeps asking, and other topics run");
        }
    }
}

/// When a warning was logged last.
#[derive(Debug, Default)]
pub(super) struct Warned(Option<Duration>);

impl Warned {
    /// Whether there was a warning; then it counts as never done.
    fn take(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Whether it is time to warn again; then it counts as done.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.0.is_none_or(|last| now >= last + WARNING_PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_once_a_minute() {
        let mut warned = Warned::default();
        let due = [0, 1, 59, 60, 61, 119, 120].map(|second| warned.is_due(Duration::from_secs(second)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }
}
