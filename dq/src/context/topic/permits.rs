//! Permits: which job starts when, and how many more jobs the node wants.
//!
//! Each running handler has a permit; an abandoned run keeps its permit until it returns. A topic has at most `concurrency`
//! permits, and fewer if it shares those of its node (`node_concurrency`) with topics that need them, too. A
//! quarantined job (one crash short of its limit) runs alone: it starts only after the store has noted so in an `isolate`
//! (rule 19).

use std::time::Duration;

use super::pipeline::RequestKind;
use super::runs::longest_count;
use super::{HeldJob, Stage, Topic};
use crate::job::{JobId, Sequence, Token};
use crate::store::step::{Change, Isolate, MOST_JOBS, NoteVerdict, Noted};

impl Topic {
    /// Permits that are in use or promised.
    pub(super) fn permits_used(&self) -> usize {
        self.held.needing_permits() - self.held.waiting() + self.runs.without_job()
    }

    /// Asks for the permits of the node that this topic wants, and gives back what others may need more. While a claim is in
    /// flight its permits are promised.
    pub(super) fn share_permits(&mut self, now: Duration) -> Option<Duration> {
        if !self.permits.is_shared() {
            return None;
        }
        let claims = self.pipeline.busy(&[RequestKind::Transfer, RequestKind::Sweep]);
        let used = if claims { self.permits.granted().max(self.permits_used()) } else { self.permits_used() };
        let claims_soon = self.sleep.is_awake(now)
            && self.reconciliation.is_settled()
            && self.pipeline.can_send(RequestKind::Transfer, now)
            && !(self.takes_no_more() || self.starvation.is_on() || self.is_held_up(now));
        let held = self.held.needing_permits() + self.runs.without_job();
        let wanted = if claims_soon { self.permits.most() } else { used.max(held) };
        self.permits.ask(used, wanted);
        None
    }

    /// How many more jobs this node wants. Zero while it holds enough, and while no other job could start: a job that runs
    /// alone, or waits until it can, may block the others for long.
    pub(super) fn wanted(&mut self, now: Duration) -> usize {
        if self.starvation.is_on() || self.is_held_up(now) {
            return 0;
        }
        let most = self.permits.granted() + self.prefetch.ahead(now);
        let free = most.saturating_sub(self.held.needing_permits() + self.runs.without_job()).min(MOST_JOBS);
        // Each transfer costs a round trip, so while jobs wait for a permit, the node claims only a quarter of its limit or more.
        if self.held.waiting() > 0 && free < most / 4 { 0 } else { free }
    }

    /// Starts waiting jobs as long as there are permits and the lease is provably valid (rule 21).
    pub(super) fn start_handlers(&mut self, now: Duration) -> Option<Duration> {
        if self.starvation.is_on() {
            return None;
        }
        while self.permits_used() < self.permits.granted() && !self.takes_no_more() {
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
