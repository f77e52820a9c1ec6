//! What a topic or channel is doing. Its task writes the condition, `health()` reads it.

use std::mem::discriminant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::Notify;

use crate::store::StoreError;

/// What a topic or a broadcast channel is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "error")]
#[non_exhaustive]
pub enum Condition {
    /// The store has not answered yet.
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

/// The condition of something that runs. Once it is [`Condition::Stopping`] it stays so.
#[derive(Debug)]
pub(super) struct LiveCondition {
    now: Mutex<Condition>,
    /// Notified when the condition changes.
    changed: Arc<Notify>,
}

impl LiveCondition {
    pub(super) const fn new(changed: Arc<Notify>) -> Self {
        Self { now: Mutex::new(Condition::Starting), changed }
    }

    /// A condition is always valid, so dq ignores that a lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, Condition> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self) -> Condition {
        self.lock().clone()
    }

    pub(super) fn set(&self, condition: Condition) {
        let mut now = self.lock();
        if *now != Condition::Stopping && *now != condition {
            *now = condition;
            self.changed.notify_waiters();
        }
    }

    /// The store has answered.
    pub(super) fn contact(&self, topic: &str) {
        match *self.lock() {
            Condition::Working | Condition::Stopping => return,
            Condition::Starting => {}
            Condition::Recovering(_) | Condition::Stopped(_) => tracing::info!(topic, "the store answers again"),
        }
        self.set(Condition::Working);
    }

    /// The store has not answered, or has refused a request. Returns whether the kind of the condition changed; a
    /// new text alone does not count.
    pub(super) fn store_error(&self, error: &StoreError) -> bool {
        let text = error.to_string();
        let next = if error.is_outage() { Condition::Recovering(text) } else { Condition::Stopped(text) };
        let is_news = discriminant(&*self.lock()) != discriminant(&next);
        self.set(next);
        is_news
    }
}
