//! Permits: which job starts when, and how many more jobs the node wants.
//!
//! Each running handler has a permit, `concurrency` of them at most; an abandoned run keeps its permit until it returns. A
//! quarantined job (one crash short of its limit) runs alone: it starts only after the store has noted so in an `isolate`
//! (rule 19).

use std::time::Duration;

use super::pipeline::RequestKind;
use super::runs::longest_count;
use super::{HeldJob, Stage, Topic};
use crate::job::{JobId, Sequence, Token};
use crate::store::step::{Change, Isolate, NoteVerdict, Noted};

impl Topic {
    /// Permits that are in use or promised.
    pub(super) fn permits_used(&self) -> usize {
        self.held.needing_permits() - self.held.waiting() + self.runs.without_job()
    }

    /// How many more jobs this node wants: none beyond its free permits while many bytes wait. Zero while it holds enough, and while no other job could start: a job that runs
    /// alone, or waits until it can, may block the others for long.
    pub(super) fn wanted(&mut self, now: Duration) -> usize {
        if self.is_held_up(now) {
            return 0;
        }
        self.waiting.set(self.held.waiting_bytes());
        let ahead = if self.waiting.is_full() { 0 } else { self.prefetch.ahead(now) };
        let most = self.parts.topic.concurrency + ahead;
        let asked = self.budgets.claims.jobs();
        let free = most.saturating_sub(self.held.needing_permits() + self.runs.without_job()).min(asked);
        // Each transfer costs a round trip, so while jobs wait for a permit, the node claims only a quarter of its limit or more.
        if self.held.waiting() > 0 && free < asked.min(most / 4) { 0 } else { free }
    }

    /// Starts waiting jobs as long as there are permits and the lease is provably valid (rule 21).
    pub(super) fn start_handlers(&mut self, now: Duration) -> Option<Duration> {
        while self.permits_used() < self.parts.topic.concurrency && !self.takes_no_more() {
            let isolated = self.held.isolated(now).map(|(id, job, until)| (id.clone(), job.token, job.stage(), until));
            let (id, token) = match isolated {
                Some((id, token, Stage::Waiting, _)) => (id, token), // again, for its `final_retry`
                Some((.., until)) => return Some(until), // until it is confirmed gone it is charged if this node dies
                None => self.held.next_to_start()?,
            };
            if !self.lease.is_good(now) {
                return None;
            }
            if self.pipeline.busy(&[RequestKind::Isolate]) {
                return None; // the job of that request runs alone
            }
            let timeout = self.parts.topic.timeout;
            if self.runs.has_isolated() && self.runs.counted(now, timeout).isolated {
                return self.runs.next_uncounted(now, timeout);
            }
            if !self.held.get(&id).is_some_and(|job| self.is_quarantined(job)) {
                self.start_held(&id, now, false);
                continue;
            }
            // Nothing overtakes a quarantined job, or it would starve; and no other job may be about to start.
            if self.runs.counted(now, timeout).any {
                return self.runs.next_uncounted(now, timeout);
            }
            if self.held.needing_permits() > self.held.waiting() + self.runs.with_job() {
                return None;
            }
            if !self.pipeline.can_send(RequestKind::Isolate, now) {
                return self.pipeline.pause_end(RequestKind::Isolate, now);
            }
            self.held.isolate(&id, now + longest_count(timeout));
            let (last_seen, lease) = (self.pipeline.last_seen, self.parts.node.lease);
            self.pipeline.send(Isolate { last_seen, lease, id, token });
            return None;
        }
        None
    }

    pub(super) fn on_isolated(
        &mut self,
        id: &JobId,
        token: Token,
        noted: Noted,
        sent: Duration,
        named: Sequence,
        now: Duration,
    ) {
        self.lease.renewed_if(noted.lease_status, sent, named);
        if self.held.under(id, token).is_some_and(|job| *job.stage() == Stage::Isolating) {
            match noted.note {
                NoteVerdict::Stale => drop(self.held.remove(id)),
                NoteVerdict::Ended => self.held.set(id, Stage::settling(Change::Rollback)),
                NoteVerdict::Done if self.stopping.is_ordered() => self.held.set(id, Stage::settling(Change::Rollback)),
                NoteVerdict::Done if self.lease.is_good(now) => self.start_held(id, now, true),
                NoteVerdict::Done => self.held.set(id, Stage::Waiting),
            }
        }
        self.compare_rows(noted.lease_status);
    }

    /// Whether the job is one crash short of its limit.
    pub(super) fn is_quarantined(&self, job: &HeldJob) -> bool {
        job.crashes + 1 >= self.parts.topic.max_crashes
    }

    /// Whether nothing that is claimed now could start soon, because a job runs alone or waits until it can.
    pub(super) fn is_held_up(&mut self, now: Duration) -> bool {
        let alone = self.runs.has_isolated() && self.runs.counted(now, self.parts.topic.timeout).isolated;
        if alone || self.held.isolated(now).is_some() || self.pipeline.busy(&[RequestKind::Isolate]) {
            return true;
        }
        let next = self.held.next_to_start();
        next.and_then(|(id, _)| self.held.get(&id)).is_some_and(|job| self.is_quarantined(job))
    }
}
