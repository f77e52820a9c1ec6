//! Smart sleep: when to transfer next. A topic sleeps until its head is due, a signal reports an earlier one, or the fallback
//! ends.
//!
//! The store says how long to sleep (rule 23). A signal that arrives while a transfer is in flight counts for the next one,
//! because the flag is cleared before the request is sent.

use std::time::Duration;

use crate::store::step::{Role, Transferred};

/// The shortest time between two calls of `wake`.
const WAKE_PAUSE: Duration = Duration::from_millis(10);

/// When the topic transfers next, and the role the store gave it.
#[derive(Debug)]
pub(super) struct SmartSleep {
    woken: bool,
    more: bool,
    until: Duration,
    role: Option<Role>,
    called_wake_at: Option<Duration>,
}

impl SmartSleep {
    /// A topic that transfers at once.
    pub(super) const fn new(now: Duration) -> Self {
        Self { woken: true, more: false, until: now, role: None, called_wake_at: None }
    }

    /// Something may be due: transfer at once.
    pub(super) const fn wake(&mut self) {
        self.woken = true;
    }

    pub(super) fn is_awake(&self, now: Duration) -> bool {
        self.woken || self.more || now >= self.until
    }

    /// When the topic wakes without a signal.
    pub(super) const fn wakes_at(&self) -> Duration {
        self.until
    }

    /// A transfer is sent now.
    pub(super) const fn sent(&mut self) {
        self.woken = false;
    }

    /// Takes in the answer of a transfer.
    pub(super) fn answered(&mut self, answer: &Transferred, now: Duration) {
        self.more = answer.more;
        self.role = answer.role;
        self.until = now + answer.sleep;
    }

    pub(super) const fn role(&self) -> Option<Role> {
        self.role
    }

    /// When a node without room for due jobs may call `wake`; `None`: it has no role to give up.
    pub(super) fn may_call_wake_at(&self) -> Option<Duration> {
        self.role.map(|_| self.called_wake_at.map_or(Duration::ZERO, |at| at + WAKE_PAUSE))
    }

    /// `wake` is called now: the role is given up.
    pub(super) const fn called_wake(&mut self, now: Duration) {
        self.role = None;
        self.called_wake_at = Some(now);
    }
}
