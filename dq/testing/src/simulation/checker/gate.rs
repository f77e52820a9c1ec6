//! The state of a topic as a whole, as its callers have set it (rule 29).

use dq::store::{LimitKind, Pause, TopicLimit, TopicState};
use dq::time::Timestamp;

/// The state of the topic, as callers have set it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    pub(super) state: TopicState,
    /// When a pause or a drain was last set or ended, in ms on the store's clock.
    pub(super) set_at: u64,
    /// When a run ended last while as many were RUNNING as may, in ms.
    pub(super) slot_at: u64,
}

impl Gate {
    /// Since when nodes may take what they may take now, in ms.
    pub(super) fn open_since(&self) -> u64 {
        let ended = self.state.pause.as_ref().and_then(|pause| pause.until);
        self.set_at.max(self.slot_at).max(ended.map_or(0, Timestamp::as_millis))
    }

    pub(super) fn pause(&self, clock: Timestamp) -> Option<&Pause> {
        self.state.pause.as_ref().filter(|pause| pause.until.is_none_or(|until| clock < until))
    }

    /// Why a node may not take what is due then.
    pub(super) fn refuses(&self, due: Option<Timestamp>, clock: Timestamp) -> Option<String> {
        if let Some(pause) = self.pause(clock) {
            return Some(format!("while its topic is paused: {pause:?}"));
        }
        let drain = self.state.drain.as_ref()?;
        due.is_none_or(|due| drain.since < due).then(|| format!("in a topic that drains since {}", drain.since))
    }

    /// A limit was set, or cleared.
    pub(super) fn set_limit(&mut self, kind: LimitKind, now: Vec<TopicLimit>) {
        self.state.limits.retain(|set| set.limit.kind() != kind);
        self.state.limits.extend(now);
        self.state.limits.sort_by_key(|set| set.limit.kind());
    }

    /// Whether so many jobs that are RUNNING are as many as may be.
    pub(super) fn is_full(&self, running: usize) -> bool {
        self.state.concurrency().is_some_and(|limit| running >= limit)
    }

    /// What an answer must tell.
    pub(super) fn told(&self, clock: Timestamp) -> Option<TopicState> {
        let state = TopicState { pause: self.pause(clock).cloned(), ..self.state.clone() };
        (state != TopicState::default()).then_some(state)
    }
}
