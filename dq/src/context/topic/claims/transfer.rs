//! Transfer: claims due jobs for this node, never more than can start soon.

use std::time::Duration;

use super::{Claims, Load};
use crate::context::topic::flight::CLAIMS;
use crate::context::topic::moment::Moment;
use crate::store::RequestKind;
use crate::store::step::{Transfer, Transferred, Wake};

impl Claims {
    /// Sends a transfer when one is due. A node that has a role and no room gives the role up and wakes others.
    pub(crate) fn transfer(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        if load.is_over || !load.agrees || moment.flight.busy(&CLAIMS) {
            return None;
        }
        if !self.sleep.is_awake(moment.now) {
            return Some(self.sleep.wakes_at());
        }
        let wanted = self.wanted(load, &[], moment);
        let limit = self.asks_for(wanted);
        if limit == 0 {
            let asks_at = self.ask_for_state(load, moment);
            let wakes_at = self.give_up_role(load, moment);
            return asks_at.into_iter().chain(wakes_at).min();
        }
        if !moment.can_send(RequestKind::Transfer) {
            return moment.pause_end(RequestKind::Transfer);
        }
        self.send_transfer(limit, moment);
        None
    }

    fn send_transfer(&mut self, limit: usize, moment: &mut Moment) {
        let fallback = self.fallback();
        self.sleep.sent(fallback);
        let transfer = Transfer {
            last_seen: moment.flight.last_seen(),
            limit,
            bytes: moment.flight.limits(RequestKind::Transfer).1,
            lease: self.parts.node.lease,
            fallback,
            lookahead: self.parts.topic.lookahead,
        };
        moment.send(transfer);
    }

    /// The period of the fallback scan. After anything else than a whole sleep it is up to a fifth shorter, at random: nodes that
    /// were woken together go apart, and then stay so.
    fn fallback(&self) -> Duration {
        let period = self.parts.node.fallback_scan;
        if self.sleep.slept_out() { period } else { period - self.parts.environment.random_below(period / 5) }
    }

    /// Gives the role up, if this node has one and no room for due jobs. Returns when it may.
    pub(crate) fn give_up_role(&mut self, load: Load, moment: &mut Moment) -> Option<Duration> {
        if load.jobs.ordinary_waiting() > 0 && self.active_runs(load) < self.permits.granted() && !self.is_held_up() {
            return None;
        }
        let at = self.sleep.may_call_wake_at()?;
        if moment.now < at || !moment.can_send(RequestKind::Wake) {
            return Some(at).filter(|at| *at > moment.now).or_else(|| moment.pause_end(RequestKind::Wake));
        }
        self.sleep.called_wake(moment.now);
        moment.send(Wake);
        None
    }

    /// Takes in an answer, but for its claims. While more is due, sends the next transfer before the node takes these in: so the
    /// store and the node work at the same time. Not if topics share their permits, because others may need these more; and not if
    /// a quarantined job waits, because its `isolate` goes out while no transfer is in flight.
    pub(crate) fn on_transferred(&mut self, answer: &mut Transferred, load: Load, moment: &mut Moment) {
        self.sleep.answered(answer, moment.now);
        self.on_state(answer.state.take(), Some(answer.left), answer.clock, true, moment.now);
        if !answer.more
            || load.is_over
            || self.pausing.is_on()
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

    /// The claims of an answer are taken in. If more was due and there is no room for it, others should claim it.
    pub(crate) fn on_admitted(&mut self, more: bool, load: Load, moment: &mut Moment) {
        if more && !moment.flight.busy(&[RequestKind::Transfer]) && self.wanted(load, &[], moment) == 0 {
            self.give_up_role(load, moment);
        }
    }
}
