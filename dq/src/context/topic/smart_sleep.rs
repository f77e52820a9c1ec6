//! When to transfer next: when the head is due, when a signal says there is an earlier one, or after the fallback.
//!
//! How long to sleep is the store's answer (PROTOCOL.md rule 23). A signal that comes while a transfer is under way counts
//! for the next one: the flag is cleared before the request is sent.

use std::time::Duration;

use crate::store::step::{Role, Transferred};

/// The least time between two calls of `wake`.
const WAKE_PAUSE: Duration = Duration::from_millis(10);

/// See the module.
#[derive(Debug)]
pub(super) struct SmartSleep {
    woken: bool,
    more: bool,
    until: Duration,
    role: Option<Role>,
    called_wake_at: Option<Duration>,
}

impl SmartSleep {
    /// Awake.
    pub(super) const fn new(now: Duration) -> Self {
        Self { woken: true, more: false, until: now, role: None, called_wake_at: None }
    }

    /// Something may be due.
    pub(super) const fn wake(&mut self) {
        self.woken = true;
    }

    pub(super) fn is_awake(&self, now: Duration) -> bool {
        self.woken || self.more || now >= self.until
    }

    /// When it wakes by itself.
    pub(super) const fn until(&self) -> Duration {
        self.until
    }

    /// A transfer is sent now.
    pub(super) const fn asked(&mut self) {
        self.woken = false;
    }

    /// The answer of a transfer.
    pub(super) fn told(&mut self, answer: &Transferred, now: Duration) {
        self.more = answer.more;
        self.role = answer.role;
        self.until = now + answer.sleep;
    }

    pub(super) const fn role(&self) -> Option<Role> {
        self.role
    }

    /// When a node that cannot take what is due may call `wake`; `None`: it has no role to give up.
    pub(super) fn may_call_wake_at(&self) -> Option<Duration> {
        self.role.map(|_| self.called_wake_at.map_or(Duration::ZERO, |at| at + WAKE_PAUSE))
    }

    /// `wake` is called now: the role is free for others.
    pub(super) const fn called_wake(&mut self, now: Duration) {
        self.role = None;
        self.called_wake_at = Some(now);
    }
}
