//! Pause: what a topic does while somebody has paused it, and what it knows of its state as a whole (rule 29).
//!
//! The store claims nothing for a paused topic. So that no handler begins either, the node gives back what it has claimed and not
//! begun, as soon as a signal or an answer tells of the pause. Handlers that run end as usual. Only the answer to a transfer that was
//! sent after the signal ends the pause: an older one may not know of it.

use std::time::Duration;

use super::{Claims, Load};
use crate::context::topic::moment::{Effect, Moment};
use crate::store::{Pause, TopicState};
use crate::time::Timestamp;

/// What the node knows of a pause.
#[derive(Debug, Default)]
pub(super) struct Pausing {
    /// Since when this node knows of it.
    since: Option<Duration>,
    /// What was handed over before and has not begun is not taken back yet.
    is_new: bool,
    /// The transfer in flight left before the signal came.
    pub(super) is_answer_old: bool,
    /// When the pause ends by itself, by the node's clock.
    until: Option<Duration>,
    /// When an answer last told the state of the topic.
    told_at: Duration,
    /// The state has changed since, or that signal may have been lost.
    must_ask: bool,
    /// The pause that the log has named.
    logged: Option<Pause>,
}

impl Pausing {
    /// The topic is paused, for all that this node knows since now.
    fn begins(&mut self, now: Duration) {
        self.is_new |= self.since.is_none();
        self.since.get_or_insert(now);
    }
}

impl Claims {
    /// Whether nothing may start.
    pub(crate) const fn is_paused(&self) -> bool {
        self.pausing.since.is_some()
    }

    /// The state of the topic has changed, or that signal may have been lost.
    pub(crate) const fn state_may_have_changed(&mut self) {
        self.pausing.must_ask = true;
        self.sleep.wake();
    }

    /// A signal: the topic was paused. The answer to the next transfer says why; the one in flight, if there is one, is older.
    pub(crate) fn on_paused(&mut self, is_in_flight: bool, now: Duration) {
        self.pausing.begins(now);
        self.pausing.is_answer_old = is_in_flight;
        self.sleep.wake();
    }

    /// An answer has told the state of the topic. Only the answer to a transfer `ends` a pause.
    pub(crate) fn on_state(
        &mut self,
        state: Option<Box<TopicState>>,
        left: Option<usize>,
        clock: Timestamp,
        ends: bool,
        now: Duration,
    ) {
        let is_old = ends && std::mem::take(&mut self.pausing.is_answer_old);
        let is_limited = state.as_ref().is_some_and(|state| state.limits_claims());
        self.is_limited = is_limited || self.parts.topic.is_limited();
        (self.pausing.told_at, self.pausing.must_ask) = (now, false);
        match state.as_ref().and_then(|state| state.pause.as_ref()) {
            Some(pause) => {
                self.pausing.begins(now);
                self.pausing.until = pause.until.map(|until| now + until.since(clock));
                if self.pausing.logged.as_ref() != Some(pause) {
                    let until = pause.until.map(tracing::field::display);
                    tracing::info!(topic = %self.parts.key.topic, reason = pause.reason, by = pause.by, since = %pause.since, until, "the topic is paused: it starts no jobs");
                    self.pausing.logged = Some(pause.clone());
                }
            }
            None if is_old || !ends => {
                // It says nothing about the pause that the signal told of.
                if self.is_paused() {
                    return self.sleep.wake();
                }
            }
            None => self.end_pause(now),
        }
        self.parts.stats.set_state(state, left);
    }

    fn end_pause(&mut self, now: Duration) {
        let Some(since) = self.pausing.since.take() else { return };
        self.pausing.until = None;
        if self.pausing.logged.take().is_some() {
            let paused = humantime::format_duration(Duration::from_secs((now.saturating_sub(since)).as_secs()));
            tracing::info!(topic = %self.parts.key.topic, %paused, "the topic resumes");
        }
    }

    /// Whether a pause has just begun: then what was handed over before and has not begun is taken back.
    pub(crate) const fn pause_begins(&mut self) -> bool {
        std::mem::replace(&mut self.pausing.is_new, false)
    }

    /// Asks again when the pause ends by itself.
    pub(crate) fn pause_ends(&mut self, now: Duration) -> Option<Duration> {
        let until = self.pausing.until?;
        if now < until {
            return Some(until);
        }
        self.pausing.until = None;
        self.sleep.wake();
        None
    }

    /// A node that has no room for more sends no transfer, and would not learn of a change of the state. So it scans: at once if a
    /// signal told of the change, and within the fallback while jobs wait that must not begin under a pause. Returns when.
    pub(super) fn ask_for_state(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        let at = match self.pausing.must_ask {
            true => moment.now,
            false if self.waiting_for_permits(load) == 0 => return None,
            false => self.pausing.told_at + self.parts.node.poll_interval,
        };
        if moment.now < at {
            return Some(at);
        }
        (self.pausing.told_at, self.pausing.must_ask) = (moment.now, false);
        moment.push(Effect::Scan);
        None
    }
}
