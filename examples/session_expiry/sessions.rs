//! The sessions and their last heartbeats.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// One session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) heartbeats: u32,
    /// It ended although its last heartbeat was within the idle time.
    pub(crate) too_early: bool,
    last_seen: Instant,
    ended: bool,
    checks: u32,
}

/// The result of checking whether a session is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// The session was idle for long enough and has ended.
    Ended,
    /// The session is in use: its last heartbeat was this long ago.
    SeenAgo(Duration),
    /// There is no such session.
    Gone,
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    sessions: Mutex<BTreeMap<String, Session>>,
    changed: Notify,
}

impl Sessions {
    /// A heartbeat; the first one begins the session.
    pub(crate) fn seen(&self, name: &str) {
        let now = Instant::now();
        let new = Session { heartbeats: 0, too_early: false, last_seen: now, ended: false, checks: 0 };
        let mut sessions = self.lock();
        let session = sessions.entry(name.into()).or_insert(new);
        session.last_seen = now;
        session.heartbeats += 1;
    }

    /// Ends a session whose last heartbeat was at least `idle` ago.
    pub(crate) fn end_if_idle(&self, name: &str, idle: Duration) -> Idle {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(name) else { return Idle::Gone };
        session.checks += 1;
        let ago = session.last_seen.elapsed();
        if ago < idle {
            return Idle::SeenAgo(ago);
        }
        session.ended = true;
        self.changed.notify_one();
        Idle::Ended
    }

    /// Ends a session and notes whether it was idle for less than `idle`.
    pub(crate) fn end(&self, name: &str, idle: Duration) {
        if let Some(session) = self.lock().get_mut(name) {
            session.ended = true;
            session.too_early = session.last_seen.elapsed() < idle;
            self.changed.notify_one();
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Waits until every session has ended.
    pub(crate) async fn all_ended(&self) {
        while !self.lock().values().all(|session| session.ended) {
            self.changed.notified().await;
        }
    }

    /// Returns every session, by name.
    pub(crate) fn report(&self) -> Vec<(String, Session)> {
        self.lock().iter().map(|(name, session)| (name.clone(), session.clone())).collect()
    }

    /// Returns how often its job checked the session.
    pub(crate) fn checks(&self, name: &str) -> u32 {
        self.lock().get(name).map_or(0, |session| session.checks)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
