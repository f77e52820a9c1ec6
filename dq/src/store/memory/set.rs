//! The step `set` (rule 29), and what it keeps other steps from.

use smol_str::SmolStr;

use super::now::Now;
use super::places::Seats;
use super::signals::Recipient;
use super::topic::Topic;
use crate::job::{JobId, NodeId, State};
use crate::store::{
    Due, Gate, LimitKind, MAX_LEFT, Pace, Rate, SetTopic, Signal, Slots, StoreError, TopicChange, TopicFull, TopicSet,
    TopicState,
};
use crate::time::Timestamp;

impl Topic {
    /// Changes the state of the topic as a whole, and signals all nodes if that concerns them.
    pub(crate) fn set(&mut self, now: Now, set: SetTopic) -> TopicSet {
        match set.change {
            TopicChange::Pause { group: None, .. } => self.notices.push(Recipient::Nodes, Signal::Paused),
            TopicChange::Delay(_) => {}
            TopicChange::Pause { .. }
            | TopicChange::Resume { .. }
            | TopicChange::Drain { .. }
            | TopicChange::Undrain
            | TopicChange::Limit { .. }
            | TopicChange::ClearLimit(_) => self.notices.push(Recipient::Nodes, Signal::StateChanged),
        }
        let until = |due| match due {
            Due::After(time) | Due::Usual(time) => now.after(time),
            Due::At(at) => at,
        };
        match set.change.limit() {
            Some(LimitKind::GroupConcurrency | LimitKind::GroupBurst) => self.jobs.open_groups(),
            Some(LimitKind::GroupRate) => self.jobs.try_rates_now(),
            _ => {}
        }
        match set.change.group().map(|group| SmolStr::new(group.as_str())) {
            Some(group) => {
                let pause = self.jobs.pause_of_group(&group).cloned();
                let mut state = TopicState { pause, ..TopicState::default() };
                let answer = state.set(now.floor(), set, until);
                self.jobs.set_pause_of_group(&group, state.pause);
                answer
            }
            None => {
                self.is_unsaved = true;
                self.settings.set(now.floor(), set, until)
            }
        }
    }

    /// Pauses the group of the job, or the topic of a job without a group, until then, because a handler backed off.
    pub(super) fn back_off(&mut self, now: Now, id: &JobId, node: &NodeId, until: Timestamp) {
        let group = self.jobs.get(id).and_then(|slot| slot.record.group()).map(|(_, name)| SmolStr::new(name));
        if let Some(group) = group {
            let mut state = TopicState { pause: self.jobs.pause_of_group(&group).cloned(), ..TopicState::default() };
            if state.back_off(now.floor(), id, node, until) {
                self.jobs.set_pause_of_group(&group, state.pause);
            }
        } else if self.settings.back_off(now.floor(), id, node, until) {
            self.is_unsaved = true;
            self.notices.push(Recipient::Nodes, Signal::Paused);
        }
    }

    /// How many jobs of a group may have a seat.
    pub(super) fn seats(&self) -> Seats {
        let own = self.settings.group_concurrency().or(self.by_code.group_concurrency).unwrap_or(usize::MAX);
        Seats::new(own, self.settings.group_burst().unwrap_or(self.by_code.group_burst))
    }

    /// The rate of each group.
    pub(super) fn group_rate(&self) -> Option<Rate> {
        self.settings.group_rate().or(self.by_code.group_rate)
    }

    /// The rate of the topic and the rate of each group, as far as the store knows: what was set, or what the code of the last node says that
    /// wanted jobs.
    pub(super) fn told_rates(&self) -> (Option<Rate>, Option<Rate>) {
        let (rate, group_rate) = self.code_rates;
        (self.settings.rate().or(rate), self.settings.group_rate().or(group_rate))
    }

    /// The state that counts now.
    pub(crate) fn topic_state(&self, now: Now) -> TopicState {
        self.settings.clone().at(now.floor())
    }

    /// What nodes may take now.
    pub(super) fn gate(&self, now: Now) -> Gate {
        self.settings.gate(now.floor())
    }

    /// How many jobs may be claimed, however many are due.
    pub(super) fn slots(&self) -> Slots {
        Slots::of(&self.settings, self.by_code.concurrency, self.jobs.in_runs())
    }

    /// How many jobs the rate lets nodes claim, if there is one.
    pub(super) fn pace(&self, now: Now) -> Option<Pace> {
        let rate = self.settings.rate().or(self.by_code.rate)?;
        Some(Pace::new(rate, self.opens.unwrap_or_else(|| Pace::after(rate, self.fence.0)), now.micros()))
    }

    /// The state for the answer of a step; `None` where nobody has set anything.
    pub(super) fn told(&self, now: Now) -> Option<Box<TopicState>> {
        self.settings.told(now.floor())
    }

    /// How many jobs wait that a draining topic still runs.
    pub(super) fn left(&self, gate: Gate) -> usize {
        match gate {
            Gate::Until(drained) => self.jobs.index(State::Delayed).count_due(drained).min(MAX_LEFT),
            Gate::Open | Gate::Closed(_) => 0,
        }
    }

    /// Whether so many jobs more are more than may wait. `by_code`: what the code of the caller says.
    pub(super) fn no_room(&self, by_code: Option<usize>, more: usize) -> Option<TopicFull> {
        let limit = self.settings.waiting().or(by_code)?;
        TopicFull::of(self.jobs.index(State::Delayed).len(), limit, more)
    }

    /// Refuses new jobs while the topic drains.
    pub(super) fn takes_jobs(&self) -> Result<(), StoreError> {
        match &self.settings.drain {
            Some(drain) => Err(StoreError::Draining { reason: drain.reason.clone(), by: drain.by.clone() }),
            None => Ok(()),
        }
    }
}
