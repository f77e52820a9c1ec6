//! How a topic stops, as a list of phases.
//!
//! A topic goes through the phases one after the other. While its lease is valid no node takes its jobs, and a topic that
//! stops cleanly leaves none. Other nodes can reclaim at once what could not go back in time, and charge no crash for it.

use std::time::Duration;

use super::Machine;
use crate::context::topic::StopOrder;
use crate::context::topic::flight::CLAIMS;
use crate::store::RequestKind;
use crate::store::step::Release;

/// How long the last outcomes may take, and then the release.
const FLUSH: Duration = Duration::from_secs(5);

/// How long cancelled handlers have to return. A handler that blocks its thread takes longer.
const DROP: Duration = Duration::from_millis(100);

/// The phases of a stop, in this order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Claiming ends; the node gives up its roles.
    #[default]
    Claiming,
    /// Jobs that have not started go back at once.
    Waiting,
    /// Handlers go on, until the grace ends.
    Handlers,
    /// Unfinished handlers are cancelled, and their jobs go back.
    Cancel,
    /// Outcomes are sent until the store has judged each of them.
    Outcomes,
    /// The lease ends.
    Lease,
    /// The topic no longer needs the store.
    Over,
}

/// How far the stop of a topic has come.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    /// The end of the grace, once a stop was ordered.
    grace_until: StopOrder,
    phase: Phase,
    cancelled_at: Option<Duration>,
    release_until: Option<Duration>,
    released: bool,
}

impl Stopping {
    /// Whether a stop was ordered: nothing is claimed or started any more.
    pub(super) const fn is_ordered(&self) -> bool {
        self.grace_until.is_some()
    }

    /// Whether the grace is over.
    pub(super) fn is_cancelling(&self) -> bool {
        self.phase >= Phase::Cancel
    }

    /// The release was answered.
    pub(super) const fn released(&mut self) {
        self.released = true;
    }
}

impl Machine {
    /// What the supervisor orders.
    pub(crate) const fn order(&mut self, order: StopOrder) {
        self.stopping.grace_until = order;
    }

    /// Whether every phase of the stop is over.
    pub(crate) fn is_over(&self) -> bool {
        self.stopping.phase == Phase::Over
    }

    /// Goes through the phases of the stop, once one is ordered.
    pub(super) fn stop(&mut self) -> Option<Duration> {
        let grace_until = self.stopping.grace_until?;
        while !self.is_over() {
            let phase = self.stopping.phase;
            match self.leave_phase(phase, grace_until) {
                Ok(next) => self.stopping.phase = next,
                Err(ask_again) => return Some(ask_again),
            }
            tracing::debug!(topic = %self.parts.key.topic, ?phase, "stopping");
        }
        None
    }

    /// The next phase if this one is over; otherwise when to ask again at the latest.
    fn leave_phase(&mut self, phase: Phase, grace_until: Duration) -> Result<Phase, Duration> {
        let rollback = self.parts.node.rollback_on_shutdown;
        match phase {
            Phase::Claiming => {
                // Even if it knows of no role: the answer that gives it one may be in flight.
                self.claims.give_up_role(&mut self.moment);
                Ok(Phase::Waiting)
            }
            Phase::Waiting => {
                self.runs.take_back_all(&mut self.moment.held);
                if rollback {
                    self.moment.held.roll_back_waiting();
                }
                Ok(Phase::Handlers)
            }
            Phase::Handlers => {
                let held = &mut self.moment.held;
                if rollback && held.counts().waiting > 0 {
                    held.roll_back_waiting(); // jobs that wait again because their `isolate` was not answered
                }
                let counts = held.counts();
                let unfinished = counts.needing_permits() - counts.waiting + self.runs.table().running();
                if unfinished == 0 || self.moment.now >= grace_until { Ok(Phase::Cancel) } else { Err(grace_until) }
            }
            Phase::Cancel => {
                self.runs.settings_decide_all(&mut self.moment);
                self.route();
                self.runs.give_up_all();
                if rollback {
                    self.moment.held.roll_back_unfinished();
                }
                self.stopping.cancelled_at = Some(self.moment.now);
                Ok(Phase::Outcomes)
            }
            Phase::Outcomes => {
                let cancelled_at = self.stopping.cancelled_at.unwrap_or(self.moment.now);
                // A reconcile finds the rows that an unanswered claim left in the store, and they go back too.
                let flushed = (self.lease.agrees() || !rollback)
                    && self.moment.held.counts().settling == 0
                    && !self.moment.flight.busy(&CLAIMS)
                    && !self.moment.flight.busy(&[RequestKind::Settle]);
                let end = cancelled_at + if flushed { DROP } else { FLUSH };
                let is_over = self.moment.now >= end || (flushed && self.runs.table().active() == 0);
                if is_over { Ok(Phase::Lease) } else { Err(end) }
            }
            Phase::Lease => self.release(),
            Phase::Over => Ok(Phase::Over),
        }
    }

    /// Sends the release until it is answered, or its time is over.
    fn release(&mut self) -> Result<Phase, Duration> {
        let end = *self.stopping.release_until.get_or_insert_with(|| {
            let left = self.moment.held.counts().all;
            if left > 0 {
                tracing::debug!(topic = %self.parts.key.topic, jobs = left, "stopped while still holding jobs; other nodes reclaim them");
            }
            self.moment.now + FLUSH.min(self.parts.node.call_timeout)
        });
        if self.stopping.released || self.moment.now >= end {
            return Ok(Phase::Over);
        }
        if self.moment.can_send(RequestKind::Release) {
            self.moment.send(Release { last_seen: self.moment.flight.last_seen() });
        }
        Err(self.moment.pause_end(RequestKind::Release).map_or(end, |pause| pause.min(end)))
    }
}
