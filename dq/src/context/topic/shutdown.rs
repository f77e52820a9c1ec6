//! Shutdown: the stop order, as a list.
//!
//! A topic goes through the phases one after the other. While its lease is alive nobody takes its jobs, and one that
//! stopped cleanly leaves none; whatever could not be given back in time is free for reclaim at once, without a crash
//! charged.

use std::time::Duration;

use super::Topic;
use super::pipeline::RequestKind;
use super::stopping::Phase;

/// How long the last outcomes, and then the release, may take.
const FLUSH: Duration = Duration::from_secs(5);

/// How long cancelled handlers have to be gone; who blocks its thread takes longer.
const DROP: Duration = Duration::from_millis(100);

impl Topic {
    /// Goes through the phases of the stop, once it is ordered.
    pub(super) fn stop(&mut self, now: Duration) -> Option<Duration> {
        let grace_until = self.stopping.grace_until()?;
        while let Some(phase) = self.stopping.phase() {
            if let Err(ask_again) = self.leave_phase(phase, grace_until, now) {
                return Some(ask_again);
            }
            tracing::debug!(topic = %self.parts.key, ?phase, "stopping");
            self.stopping.done += 1;
        }
        None
    }

    /// Whether the phase is over; if not, when to ask again at the latest.
    fn leave_phase(&mut self, phase: Phase, grace_until: Duration, now: Duration) -> Result<(), Duration> {
        let rollback = self.parts.node.crash_rollback;
        match phase {
            Phase::Claiming => {
                // Also without a role that it knows of: the answer that gives it one may be under way.
                self.sleep.called_wake(now);
                self.pipeline.wake();
                Ok(())
            }
            Phase::Waiting => {
                if rollback {
                    self.roll_back_waiting();
                }
                Ok(())
            }
            Phase::Handlers => {
                if rollback && self.held.waiting() > 0 {
                    self.roll_back_waiting(); // what waits again because its `isolate` was not answered
                }
                let unfinished = self.held.needing_permits() - self.held.waiting() + self.runs.running();
                if unfinished == 0 || now >= grace_until { Ok(()) } else { Err(grace_until) }
            }
            Phase::Cancel => {
                self.cancel_unfinished(rollback);
                self.stopping.cancelled_at = Some(now);
                Ok(())
            }
            Phase::Outcomes => {
                let cancelled_at = self.stopping.cancelled_at.unwrap_or(now);
                // Rows that an unanswered claim left in the store are found by a reconcile, and go back too.
                let agreed = self.reconciliation.is_settled() || !rollback;
                let flushed = agreed
                    && self.held.settling() == 0
                    && !self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep, RequestKind::Settle]);
                let end = cancelled_at + if flushed { DROP } else { FLUSH };
                if now >= end || (flushed && self.runs.active() == 0) { Ok(()) } else { Err(end) }
            }
            Phase::Lease => self.release(now),
            Phase::Store => Ok(()),
        }
    }

    /// Asks for the release until it is answered, for a while.
    fn release(&mut self, now: Duration) -> Result<(), Duration> {
        let end = *self.stopping.release_until.get_or_insert_with(|| {
            let left = self.held.len();
            if left > 0 {
                tracing::warn!(topic = %self.parts.key, jobs = left, "stopped with jobs in hand: other nodes take them");
            }
            now + FLUSH.min(self.parts.node.call_timeout)
        });
        if self.stopping.released || now >= end {
            return Ok(());
        }
        if self.pipeline.can_send(RequestKind::Release, now) {
            self.pipeline.release();
        }
        Err(self.pipeline.pause_end(RequestKind::Release, now).map_or(end, |pause| pause.min(end)))
    }
}
