//! Sweep: prunes jobs past their retention, and claims jobs that were UNACKED for their age, for `process_unacked`.
//!
//! Only the watcher sweeps, and not while it knows the topic to be empty, unless histories outlive their jobs there. A sweep takes a sequence number as a transfer does, so the two are never in flight together.

use std::time::Duration;

use super::pipeline::RequestKind;
use super::{Mode, Topic};
use crate::store::step::{Role, Sequenced, Sweep, Swept};

/// The pause between two sweeps. Ages are days, and an idle topic must cost next to nothing.
pub(super) const SWEEP_PERIOD: Duration = Duration::from_secs(300);

impl Topic {
    /// Sends a sweep when one is due.
    pub(super) fn sweep(&mut self, now: Duration) -> Option<Duration> {
        if self.takes_no_more()
            || self.sleep.role() != Some(Role::Watcher)
            // One that was refused is asked again also without a job: only its answer shows that the topic works.
            || (self.reclaims.knows_no_job() && self.keeps_nothing() && self.stopped_by != Some(RequestKind::Sweep))
            || !self.reconciliation.is_settled()
            || self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep])
        {
            return None;
        }
        if now < self.sweep_at {
            return Some(self.sweep_at);
        }
        let limit = self.wanted(&[], now);
        if limit == 0 {
            return None;
        }
        if !self.pipeline.can_send(RequestKind::Sweep, now) {
            return self.pipeline.pause_end(RequestKind::Sweep, now);
        }
        self.sweep_at = now + SWEEP_PERIOD;
        let settings = &self.parts.topic;
        self.pipeline.send(Sweep {
            last_seen: self.pipeline.last_seen,
            limit,
            bytes: self.budgets.claims.bytes(),
            lease: self.parts.node.lease,
            unacked_age: settings.unacked_age,
            dead_kept: settings.dead_kept,
            dead_most: settings.dead_most,
        });
        None
    }

    /// Whether a topic without a job has nothing to forget: histories outlive their jobs.
    fn keeps_nothing(&self) -> bool {
        self.parts.topic.history_after.is_zero()
    }

    pub(super) fn on_swept(&mut self, sequenced: Sequenced<Swept>, sent: Duration, now: Duration) {
        let swept = match sequenced {
            Sequenced::Done(swept) => swept,
            Sequenced::Reconcile(_) => return self.reconciliation.need(),
        };
        self.pipeline.last_seen = swept.lease_status.sequence;
        if swept.pruned_dead > 0 {
            tracing::info!(topic = %self.parts.key.topic, jobs = swept.pruned_dead, "removed DEAD jobs past their retention");
        }
        self.on_state(swept.state, None, swept.clock, false);
        self.admit(swept.claims, Mode::Swept, swept.clock);
        if swept.lease_status.rows > 0 {
            self.lease.renewed(sent);
        }
        self.compare_rows(swept.lease_status);
        if swept.more {
            self.sweep_at = now;
        }
    }
}
