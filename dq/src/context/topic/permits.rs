//! Permits: which ordinary job starts when, and how many more jobs the node wants.
//!
//! Each running handler has a permit; an abandoned run keeps its permit until it returns. A topic has at most `concurrency`
//! permits, and fewer if it shares those of its node (`node_concurrency`) with topics that need them, too. `isolation.rs`
//! starts quarantined jobs.

use std::time::Duration;

use super::Topic;
use super::isolation::longest_wait;
use super::pipeline::RequestKind;
use crate::listener::AckMode;
use crate::store::step::{Claim, MOST_JOBS};

/// How many runs wait in the queue of the runners at most.
const MOST_AHEAD: usize = 256;
/// The largest record that waits there. So all of them have a megabyte at most.
const LARGEST_AHEAD: usize = 4 << 10;

impl Topic {
    /// Permits that are in use or promised.
    pub(super) fn permits_used(&self) -> usize {
        self.handed_over() - self.without_permit()
    }

    /// Runs that have a permit or wait for one in the queue of the runners. A batch has one, whatever becomes of its jobs.
    pub(super) fn handed_over(&self) -> usize {
        let (batches, batched) = self.runs.batches();
        self.held.needing_permits() - self.held.waiting() - batched + batches + self.runs.without_job()
    }

    /// Those of them that wait for a permit. The others in the queue only wait for their runtime.
    fn without_permit(&self) -> usize {
        self.handed_over().saturating_sub(self.permits.granted()).min(self.runners.queued())
    }

    /// How many jobs wait for a permit, in the queue of the runners or beside it.
    pub(super) fn waiting_for_permits(&self) -> usize {
        self.held.waiting() + self.without_permit()
    }

    /// How many runs have a permit and may be executing.
    pub(super) fn active_runs(&self) -> usize {
        self.runs.active().saturating_sub(self.without_permit())
    }

    /// How many runs to hand over beyond the permits: as many as ended lately. None where others may have a better claim to the
    /// next permit: another topic, or a quarantined job. None if a job that is handed over can not go back. And no batch: until a
    /// permit is free it may still grow.
    fn ahead(&mut self, now: Duration) -> usize {
        if self.permits.is_shared()
            || self.held.quarantined() > 0
            || self.parts.topic.ack == AckMode::OnClaim
            || self.takes_batches()
        {
            return 0;
        }
        self.prefetch.ahead(now).min(MOST_AHEAD)
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
            && !(self.takes_no_more() || self.pausing.is_on() || self.starvation.is_on() || self.is_held_up());
        let held = self.handed_over() + self.held.waiting().div_ceil(self.batch_size());
        let wanted = if claims_soon { self.permits.most() } else { used.max(held) };
        self.permits.ask(used, wanted);
        None
    }

    /// How many more jobs this node wants: none beyond its free permits while many bytes wait. Zero while it holds enough, and
    /// while a job of its process must run alone. Quarantined jobs that wait do not count, because ordinary ones overtake them.
    /// `arriving` are claimed, and the node has not taken them in yet.
    pub(super) fn wanted(&mut self, arriving: &[Claim], now: Duration) -> usize {
        if self.starvation.is_on() || self.parts.environment.process().is_closed_to_claims() {
            return 0;
        }
        // With one permit, an ordinary job must be there to run between two quarantined ones.
        let bytes = arriving.iter().map(|claim| claim.record.as_bytes().len()).sum::<usize>();
        self.waiting.set(self.bytes_held_up() + bytes);
        if self.takes_batches() {
            return self.wanted_for_batches(arriving.len(), now);
        }
        let ahead =
            if self.waiting.is_full() { 0 } else { self.prefetch.ahead(now) }.max(self.held.quarantined().min(1));
        let most = self.permits.granted() + ahead;
        let overtaken = self.held.quarantined_waiting().min(MOST_JOBS);
        let wanting = self.held.needing_permits() - overtaken + self.runs.without_job() + arriving.len();
        let asked = self.budgets.claims.jobs();
        let free = most.saturating_sub(wanting).min(asked);
        // Each transfer costs a round trip, so while jobs wait for a permit, the node claims only a quarter of its limit or more.
        if self.held.ordinary_waiting() + self.without_permit() + arriving.len() > 0 && free < asked.min(most / 4) {
            0
        } else {
            free
        }
    }

    /// Starts ordinary jobs as long as there are permits and the lease is provably valid (rule 21).
    pub(super) fn start_handlers(&mut self, now: Duration) -> Option<Duration> {
        if self.starvation.is_on() || self.pausing.is_on() {
            return None;
        }
        let too_long = longest_wait(self.parts.topic.timeout);
        let (permits, ahead) = (self.permits.granted(), self.ahead(now));
        while self.handed_over() < permits + ahead && !self.takes_no_more() {
            let (id, _) = self.held.next_to_start()?;
            let is_large = self.held.get(&id).is_some_and(|job| job.size() > LARGEST_AHEAD);
            if is_large && self.handed_over() >= permits {
                return None;
            }
            if !self.lease.is_good(now) {
                return None;
            }
            let entry = self.parts.environment.process().enter(too_long)?; // until the process changes
            self.isolations.ordinary_started();
            self.start_held(&id, now, entry);
        }
        None
    }

    /// Whether nothing that is claimed now could start soon, because a job of this process must run alone.
    pub(super) fn is_held_up(&self) -> bool {
        self.parts.environment.process().is_closed()
    }
}
