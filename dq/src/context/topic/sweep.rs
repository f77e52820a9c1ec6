//! Age: forgets what is past its retention, and asks `process_unacked` of jobs that were UNACKED for their age.
//!
//! Only the watcher does it. The step takes a turn as a transfer does, so it never runs beside one.

use std::time::Duration;

use super::pipeline::RequestKind;
use super::{AGE_PERIOD, Mode, Topic};
use crate::store::step::{Role, Sequenced, Sweep, Swept};

impl Topic {
    /// Sends an age step when it is time.
    pub(super) fn sweep(&mut self, now: Duration) -> Option<Duration> {
        if self.takes_no_more()
            || self.sleep.role() != Some(Role::Watcher)
            || !self.reconciliation.is_settled()
            || self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep])
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
        if !self.pipeline.can_send(RequestKind::Sweep, now) {
            return self.pipeline.pause_end(RequestKind::Sweep, now);
        }
        self.age_at = now + AGE_PERIOD;
        let settings = &self.parts.topic;
        self.pipeline.sweep(Sweep {
            last_seen: self.pipeline.last_seen,
            limit,
            lease: self.parts.node.lease,
            unacked_age: settings.unacked_age,
            dead_kept: settings.dead_kept,
            dead_most: settings.dead_most,
        });
        None
    }

    pub(super) fn on_swept(&mut self, sequenced: Sequenced<Swept>, sent: Duration, now: Duration) {
        let aged = match sequenced {
            Sequenced::Done(aged) => aged,
            Sequenced::Reconcile(_) => return self.reconciliation.need(),
        };
        self.pipeline.last_seen = aged.lease_status.sequence;
        if aged.pruned_dead > 0 {
            tracing::info!(topic = %self.parts.key, jobs = aged.pruned_dead, "DEAD jobs past their retention were forgotten");
        }
        self.admit(aged.claims, Mode::Swept, aged.clock);
        if aged.lease_status.rows > 0 {
            self.lease.renewed(sent);
        }
        self.compare_rows(aged.lease_status);
        if aged.more {
            self.age_at = now;
        }
    }
}
