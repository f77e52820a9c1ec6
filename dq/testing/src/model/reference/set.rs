//! The step `set`, and what it means for the others (rule 29).

use super::Topic;
use super::calls::{Call, KeptAnswer};
use dq::job::ProducerId;
use dq::store::{BatchAnswer, Drain, Due, MOST_LEFT, Pause, SetTopic, TopicChange, TopicDelay, TopicSet, TopicState};
use dq::time::Timestamp;

impl Topic {
    pub(in super::super) fn set(
        &mut self,
        producer: &ProducerId,
        number: u64,
        set: &SetTopic,
    ) -> BatchAnswer<TopicSet> {
        match self.call(producer, number) {
            Call::Late => return BatchAnswer::Late,
            Call::Repeat(kept) => return kept.set(),
            Call::New => {}
        }
        let (clock, by) = (self.now(), set.by.clone());
        if !self.is_paused() && matches!(set.change, TopicChange::Pause { .. } | TopicChange::Resume) {
            self.state.pause = None;
        }
        let (mut before, mut now) = (TopicState::default(), TopicState::default());
        match &set.change {
            TopicChange::Pause { reason, until } => {
                before.pause = self.state.pause.take();
                let since = before.pause.as_ref().map_or(clock, |pause| pause.since);
                let until = until.map(|until| match until {
                    Due::After(time) | Due::Usual(time) => self.after(time),
                    Due::At(at) => at,
                });
                now.pause = Some(Pause { reason: reason.clone(), until, by, since });
                self.state.pause.clone_from(&now.pause);
            }
            TopicChange::Resume => before.pause = self.state.pause.take(),
            TopicChange::Drain { reason } => {
                before.drain = self.state.drain.take();
                let since = before.drain.as_ref().map_or(clock, |drain| drain.since);
                now.drain = Some(Drain { reason: reason.clone(), by, since });
                self.state.drain.clone_from(&now.drain);
            }
            TopicChange::Undrain => before.drain = self.state.drain.take(),
            TopicChange::Delay(delay) => {
                before.delay = self.state.delay.take();
                now.delay = delay.map(|delay| TopicDelay { delay, by, since: clock });
                self.state.delay.clone_from(&now.delay);
            }
        }
        let answer = TopicSet { before, now };
        self.keep(producer, number, KeptAnswer::Set(Box::new(answer.clone())));
        BatchAnswer::Done(vec![answer])
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state.pause.as_ref().is_some_and(|pause| pause.until.is_none_or(|until| self.now() < until))
    }

    /// Whether nodes may not take everything that is due.
    pub(in super::super) fn is_held(&self) -> bool {
        self.is_paused() || self.state.drain.is_some()
    }

    /// Whether a job or broadcast that is due then may be taken, once it is due.
    pub(super) fn may_take(&self, due: Timestamp) -> bool {
        !self.is_paused() && self.state.drain.as_ref().is_none_or(|drain| due <= drain.since)
    }

    /// When nodes can take something next, of what is due at these times.
    pub(super) fn opens(&self, dues: impl Iterator<Item = Timestamp>) -> Option<Timestamp> {
        if self.is_paused() {
            return self.state.pause.as_ref().and_then(|pause| pause.until);
        }
        dues.filter(|due| self.may_take(*due)).min()
    }

    /// The state, as an answer tells it.
    pub(super) fn told(&self) -> Option<Box<TopicState>> {
        let mut state = self.state.clone();
        if !self.is_paused() {
            state.pause = None;
        }
        (state != TopicState::default()).then(|| Box::new(state))
    }

    /// How many jobs wait that a draining topic still runs.
    pub(super) fn left(&self) -> usize {
        let left =
            || self.by_time(dq::job::State::Delayed, |_| ()).iter().filter(|(due, _)| self.may_take(*due)).count();
        if self.state.drain.is_some() && !self.is_paused() { left().min(MOST_LEFT) } else { 0 }
    }
}
