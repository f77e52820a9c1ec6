//! Age: forgets what is past its retention, and asks `process_unacked` of jobs that were UNACKED for their age.
//!
//! Only the watcher does it. The step takes a turn as a transfer does, so it never runs beside one.

use std::time::Duration;

use super::topic::line::Kind;
use super::topic::{AGE_PERIOD, Mode, Topic};
use crate::store::step::{Age, Aged, Role, Turned};

impl Topic {
    /// Sends an age step when it is time.
    pub(super) fn age(&mut self, now: Duration) -> Option<Duration> {
        if self.takes_no_more()
            || self.sleep.role() != Some(Role::Watcher)
            || !self.reconciliation.is_settled()
            || self.line.busy(&[Kind::Transfer, Kind::Age])
        {
            return None;
        }
        if now < self.age_at {
            return Some(self.age_at);
        }
        let limit = self.wanted(now);
        if limit == 0 {
            return None;
        }
        if !self.line.can_send(Kind::Age, now) {
            return self.line.pause_end(Kind::Age, now);
        }
        self.age_at = now + AGE_PERIOD;
        let settings = &self.parts.topic;
        self.line.age(Age {
            heard: self.line.heard,
            limit,
            lease: self.parts.node.lease,
            unacked_age: settings.unacked_age,
            dead_kept: settings.dead_kept,
            dead_most: settings.dead_most,
        });
        None
    }

    pub(super) fn on_aged(&mut self, turned: Turned<Aged>, sent: Duration, now: Duration) {
        let aged = match turned {
            Turned::Done(aged) => aged,
            Turned::Reconcile(_) => return self.reconciliation.need(),
        };
        self.line.heard = aged.standing.turn;
        if aged.pruned_dead > 0 {
            tracing::info!(topic = %self.parts.key, jobs = aged.pruned_dead, "DEAD jobs past their retention were forgotten");
        }
        self.admit(aged.claims, Mode::Aged, aged.clock);
        if aged.standing.rows > 0 {
            self.lease.renewed(sent);
        }
        self.compare_rows(aged.standing);
        if aged.more {
            self.age_at = now;
        }
    }
}
