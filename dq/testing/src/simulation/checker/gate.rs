//! The state of a topic as a whole, as its callers have set it (rule 29).

use super::groups::Claimed;
use dq::job::{JobId, NodeId};
use dq::store::{LimitKind, Pause, TopicLimit, TopicState};
use dq::time::Timestamp;

/// The state of the topic, as callers have set it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    pub(super) state: TopicState,
    /// When a pause or a drain was last set or ended, in ms on the store's clock.
    pub(super) set_at: u64,
    /// When a run ended last while as many were RUNNING as may, or the rate let the next job be claimed, in ms.
    pub(super) slot_at: u64,
    /// What was claimed under the present rate.
    claimed: Claimed,
}

impl Gate {
    /// Since when nodes may take what they may take now, in ms.
    pub(super) fn open_since(&self) -> u64 {
        self.open_for_ticks_since().max(self.slot_at)
    }

    /// The same for the ticks of schedules, which pass the limits.
    pub(super) fn open_for_ticks_since(&self) -> u64 {
        let ended = self.state.pause.as_ref().and_then(|pause| pause.until);
        self.set_at.max(ended.map_or(0, Timestamp::as_millis))
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
        if kind == LimitKind::Rate {
            self.claimed = Claimed::default();
        }
    }

    /// The longest time in ms from a claim, or a new rate, to the next claim under the rate.
    pub(super) fn interval(&self) -> u64 {
        self.state
            .rate()
            .map_or(0, |rate| rate.period().as_millis() as u64 * 1_005 / 1_000 / u64::from(rate.jobs()) + 2)
    }

    /// Whether as many jobs were claimed within the last period as may be.
    pub(super) fn is_spent(&self, micros: u64) -> bool {
        self.state.rate().is_some_and(|rate| self.claimed.have_spent(rate, micros))
    }

    /// A job is claimed at this time. A tick spends nothing, but a store that opens again counts an interval from whatever was claimed last.
    pub(super) fn claims(&mut self, micros: u64, is_tick: bool) {
        let Some(rate) = self.state.rate() else { return };
        if !is_tick {
            self.claimed.add(rate, micros);
        }
        self.slot_at = micros / 1000 + self.interval();
    }

    /// A handler of this job backs off until then: the topic is paused by its node, unless it is paused for longer.
    pub(super) fn backs_off(&mut self, id: &JobId, node: &NodeId, until: Timestamp, clock: Timestamp) {
        let before = self.pause(clock).cloned();
        if before.as_ref().is_none_or(|pause| pause.until.is_some_and(|end| end < until)) {
            let reason = format!("the handler of job {id} backed off");
            let since = before.map_or(clock, |pause| pause.since);
            self.state.pause = Some(Pause { reason, until: Some(until), by: node.to_string(), since });
        }
    }

    /// Whether so many jobs that are RUNNING are as many as may be.
    pub(super) fn is_full(&self, running: usize) -> bool {
        self.state.concurrency().is_some_and(|limit| running >= limit)
    }
}
