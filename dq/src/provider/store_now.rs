//! The store's clock, for what a call begins and for the definitions of a topic: the clock of a node or a caller decides nothing (rule 30).

use std::time::Duration;

use tokio::sync::watch;

use super::error::{CallError, Doing};
use super::query::query;
use super::root::Caller;
use crate::environment::Environment;
use crate::time::Timestamp;

/// Wakes the task that looks after the definitions of a topic. The task ends with the last of these.
#[derive(Debug, Clone, Default)]
pub struct DefinitionsWake(watch::Sender<Asked>);

/// What the task is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    /// The store's clock in an answer, and when the answer came.
    clock: (Timestamp, Duration),
    /// What the clock showed when it fell back, at the earliest; otherwise what it showed in the answer.
    from: Timestamp,
    /// How often the store has lost what it knew of the topic.
    losses: u32,
}

impl DefinitionsWake {
    /// The store's clock shows this: its first answer, or the clock has fallen back within the last `fell`, or the store has lost what it knew of
    /// the topic.
    pub(crate) fn look(&self, clock: Timestamp, fell: Duration, now: Duration, is_lost: bool) {
        self.0.send_modify(|asked| {
            (asked.clock, asked.from) = ((clock, now), clock.before(fell));
            asked.losses += u32::from(is_lost);
        });
    }
    pub(super) fn subscribe(&self) -> watch::Receiver<Asked> {
        self.0.subscribe()
    }
}

impl Asked {
    pub(super) const fn losses(self) -> u32 {
        self.losses
    }
}

/// The store's clock, by the newest answer that the task was woken with.
#[derive(Clone)]
pub(super) struct StoreNow {
    asked: watch::Receiver<Asked>,
    environment: Environment,
}

impl StoreNow {
    pub(super) const fn new(asked: watch::Receiver<Asked>, environment: Environment) -> Self {
        Self { asked, environment }
    }

    pub(super) fn get(&self) -> Timestamp {
        let (clock, at) = self.asked.borrow().clock;
        clock.after(self.environment.now().saturating_sub(at))
    }

    /// From when on ticks count that have passed: the clock may have fallen back a while ago.
    pub(super) fn from(&self) -> Timestamp {
        self.asked.borrow().from
    }

    /// Whether the node has ended.
    pub(super) fn is_over(&self) -> bool {
        self.asked.has_changed().is_err()
    }
}

/// The store's clock, for what begins with a call. While the store is away and its adds wait in a directory, that has the newest answer.
pub(super) async fn store_now(caller: &Caller, within: Option<Duration>) -> Result<Timestamp, CallError> {
    if let Some(clock) = caller.root.buffer.as_ref().and_then(|buffer| buffer.clock_while_away()) {
        return Ok(clock);
    }
    let counts = query(&caller.root, caller.target(Doing::Query), within, (), |store, key, (), _| store.counts(key));
    Ok(counts.await?.clock)
}
