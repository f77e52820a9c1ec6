//! Transfer: claims due jobs for this node, never more than can start soon.
//!
//! Two steps claim jobs. Each takes a sequence number, so the two are never in flight together. A sweep prunes jobs past their retention,
//! and claims jobs that were UNACKED for their age, for `on_park_timeout`. Only the watcher sweeps, and not while it knows the topic to
//! be empty, unless histories outlive their jobs there.

use std::time::Duration;

use super::{Claims, Load};
use crate::config::TopicSettings;
use crate::context::topic::DRIFT;
use crate::context::topic::flight::CLAIMS;
use crate::context::topic::moment::Moment;
use crate::context::topic::stage::Mode;
use crate::store::RequestKind;
use crate::store::step::{Role, Sweep, Swept, Transfer, Transferred};
use crate::time::Timestamp;

/// The pause between two sweeps. Ages are days, and an idle topic must cost next to nothing.
pub(super) const SWEEP_PERIOD: Duration = Duration::from_secs(300);

/// The pause after a sweep that could do nothing of what there is to do, because a limit of all nodes lets nothing be claimed.
const LIMITED_PAUSE: Duration = Duration::from_secs(5);

impl Claims {
    /// Sends a transfer when one is due. A node that has a role and no room gives the role up and wakes others.
    pub(crate) fn transfer(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        if load.is_over {
            self.refused = None;
        }
        if load.is_over || !load.agrees || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if !self.sleep.is_awake(moment.now) {
            return Some(self.sleep.wakes_at());
        }
        let wanted = self.wanted(load, &[], moment);
        // While the topic is paused, the transfer asks whether it still is.
        let limit = if self.is_paused() { wanted.max(1) } else { wanted };
        if limit == 0 {
            let asks_at = self.ask_for_state(load, moment);
            let wakes_at = self.make_way(load, moment);
            return asks_at.into_iter().chain(wakes_at).min();
        }
        if !moment.can_send(RequestKind::Transfer) {
            return moment.pause_end(RequestKind::Transfer);
        }
        self.send_transfer(limit, moment);
        None
    }

    fn send_transfer(&mut self, limit: usize, moment: &mut Moment) {
        let (last_seen, bytes) = (moment.flight.last_seen(), moment.flight.limits(RequestKind::Transfer).1);
        let (lease, fallback, lookahead) = (self.parts.node.lease, self.fallback(), self.parts.topic.lookahead);
        self.sleep.sent(fallback, moment.now);
        moment.send(Transfer { last_seen, limit, bytes, lease, fallback, lookahead });
    }

    /// The period of the fallback scan. After anything else than a whole sleep it is up to a fifth shorter, at random: nodes that
    /// were woken together go apart, and then stay so.
    fn fallback(&self) -> Duration {
        let period = self.parts.node.poll_interval;
        if self.sleep.slept_out() { period } else { period - self.parts.environment.random_below(period / 5) }
    }

    /// Gives the role up, if this node has one and no room for due jobs. Returns when it may.
    fn make_way(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        if load.jobs.ordinary_waiting() > 0 && self.active_runs(load) < self.permits.granted() && !self.is_held_up() {
            return None;
        }
        let at = self.sleep.may_call_wake_at()?;
        if moment.now < at || !moment.can_send(RequestKind::Wake) {
            return Some(at).filter(|at| *at > moment.now).or_else(|| moment.pause_end(RequestKind::Wake));
        }
        self.give_up_role(moment);
        None
    }

    /// Takes in an answer, but for its claims. While more is due, sends the next transfer before the node takes these in: so the
    /// store and the node work at the same time. Not if topics share their permits, because others may need these more; and not if
    /// a quarantined job waits, because its `isolate` goes out while no transfer is in flight.
    pub(crate) fn on_transferred(&mut self, answer: &mut Transferred, load: Load, moment: &mut Moment) {
        let (fell, is_lost) = (self.sleep.answered(answer, moment.now), std::mem::take(&mut self.is_forgotten));
        if fell.is_some() || is_lost {
            self.parts.definitions.look(answer.clock, fell.unwrap_or_default(), moment.now, is_lost);
        }
        self.has_claimed(&answer.claims, answer.more);
        self.on_state(answer.state.take(), Some(answer.left), answer.clock, true, moment.now);
        if !answer.more
            || load.is_over
            || self.is_paused()
            || !load.agrees
            || self.permits.is_shared()
            || load.jobs.quarantined_waiting > 0
            || answer.claims.iter().any(|claim| claim.crashes > 0)
            || !moment.can_send(RequestKind::Transfer)
        {
            return;
        }
        let limit = self.wanted(load, &answer.claims, moment);
        if limit > 0 {
            self.send_transfer(limit, moment);
        }
    }

    /// When a job that was just claimed may start, by the node's clock; `None`: it is due.
    pub(crate) fn starts_at(&self, due: Timestamp, mode: Mode, clock: Timestamp) -> Option<Duration> {
        if mode == Mode::Swept || due <= clock {
            return None;
        }
        let at = self.sleep.reaches(due).expect("an answer has brought the job");
        Some(at + due.since(clock) / DRIFT)
    }

    /// The claims of an answer are taken in. If more was due and there is no room for it, others should claim it.
    pub(crate) fn on_admitted(&mut self, more: bool, load: Load, moment: &mut Moment) {
        if more && !moment.flight.busy(&[RequestKind::Transfer]) && self.wanted(load, &[], moment) == 0 {
            self.make_way(load, moment);
        }
    }

    /// Sends a sweep when one is due, unless the topic `has_nothing` to sweep.
    pub(crate) fn sweep(&mut self, load: Load, has_nothing: bool, moment: &mut Moment) -> Option<Duration> {
        let is_watcher = self.role() == Some(Role::Watcher);
        if load.is_over || !is_watcher || has_nothing || !load.agrees || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if moment.now < self.sweep_at {
            return Some(self.sweep_at);
        }
        let limit = self.wanted(load, &[], moment);
        if limit == 0 {
            return None;
        }
        if !moment.can_send(RequestKind::Sweep) {
            return moment.pause_end(RequestKind::Sweep);
        }
        self.sweep_at = moment.now + SWEEP_PERIOD;
        let (last_seen, bytes) = (moment.flight.last_seen(), moment.flight.limits(RequestKind::Sweep).1);
        let TopicSettings { park_timeout, dead_retention, dead_max, done_max, .. } = self.parts.topic;
        let lease = self.parts.node.lease;
        moment.send(Sweep { last_seen, limit, bytes, lease, park_timeout, dead_retention, dead_max, done_max });
        None
    }

    /// Takes in an answer, but for its claims.
    pub(crate) fn on_swept(&mut self, swept: &mut Swept, now: Duration) {
        if swept.pruned_dead > 0 {
            tracing::info!(topic = %self.parts.key.topic, jobs = swept.pruned_dead, "removed DEAD jobs past their retention");
        }
        self.on_state(swept.state.take(), None, swept.clock, false, now);
        self.has_claimed(&swept.claims, swept.more);
        if swept.more {
            let is_limited = swept.claims.is_empty() && (swept.pruned_dead, swept.pruned_done) == (0, 0);
            self.sweep_at = if is_limited { now + LIMITED_PAUSE } else { now };
        }
    }

    /// The topic was empty, and may have a job from now on: the sweep comes within its usual time.
    pub(crate) fn sweep_later(&mut self, now: Duration) {
        self.sweep_at = self.sweep_at.max(now + SWEEP_PERIOD);
    }
}
