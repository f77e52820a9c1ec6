//! Who was seen when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// One session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) heartbeats: u32,
    /// It ended though it had been seen within the idle time.
    pub(crate) too_soon: bool,
    last_seen: Instant,
    ended: bool,
    looks: u32,
}

/// What a look at a session found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// Idle for long enough: it ended.
    Ended,
    /// In use: last seen so long ago.
    SeenAgo(Duration),
    /// No such session.
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
        let new = Session { heartbeats: 0, too_soon: false, last_seen: now, ended: false, looks: 0 };
        let mut sessions = self.lock();
        let session = sessions.entry(name.into()).or_insert(new);
        session.last_seen = now;
        session.heartbeats += 1;
    }

    /// Ends a session that was not seen for `idle`.
    pub(crate) fn end_if_idle(&self, name: &str, idle: Duration) -> Idle {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(name) else { return Idle::Gone };
        session.looks += 1;
        let ago = session.last_seen.elapsed();
        if ago < idle {
            return Idle::SeenAgo(ago);
        }
        session.ended = true;
        self.changed.notify_one();
        Idle::Ended
    }

    /// Ends a session, and sees whether it was idle for as long as it should.
    pub(crate) fn end(&self, name: &str, idle: Duration) {
        if let Some(session) = self.lock().get_mut(name) {
            session.ended = true;
            session.too_soon = session.last_seen.elapsed() < idle;
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

    /// Every session, by name.
    pub(crate) fn report(&self) -> Vec<(String, Session)> {
        self.lock().iter().map(|(name, session)| (name.clone(), session.clone())).collect()
    }

    /// How often the job of a session looked at it.
    pub(crate) fn looked_at(&self, name: &str) -> u32 {
        self.lock().get(name).map_or(0, |session| session.looks)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
