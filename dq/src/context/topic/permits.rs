//! Permits: which ordinary job starts when, and how many more jobs the node wants.
//!
//! Each running handler has a permit; an abandoned run keeps its permit until it returns. A topic has at most `concurrency`
//! permits, and fewer if it shares those of its node (`node_concurrency`) with topics that need them, too. `isolation.rs`
//! starts quarantined jobs.

use std::time::Duration;

use super::Topic;
use super::isolation::longest_wait;
use super::pipeline::RequestKind;
use crate::store::step::MOST_JOBS;

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
            && !(self.takes_no_more() || self.starvation.is_on() || self.is_held_up());
        let held = self.held.needing_permits() + self.runs.without_job();
        let wanted = if claims_soon { self.permits.most() } else { used.max(held) };
        self.permits.ask(used, wanted);
        None
    }

    /// How many more jobs this node wants: none beyond its free permits while many bytes wait. Zero while it holds enough, and while a job of its process must run alone.
    /// Quarantined jobs that wait do not count, because ordinary ones overtake them.
    pub(super) fn wanted(&mut self, now: Duration) -> usize {
        if self.starvation.is_on() || self.parts.environment.process().is_closed_to_claims() {
            return 0;
        }
        // With one permit, an ordinary job must be there to run between two quarantined ones.
        let quarantined = self.held.quarantined_waiting() + self.held.quarantined_running();
        self.waiting.set(self.held.waiting_bytes());
        let ahead = if self.waiting.is_full() { 0 } else { self.prefetch.ahead(now) }.max(quarantined.min(1));
        let most = self.permits.granted() + ahead;
        let overtaken = self.held.quarantined_waiting().min(MOST_JOBS);
        let wanting = self.held.needing_permits() - overtaken + self.runs.without_job();
        let asked = self.budgets.claims.jobs();
        let free = most.saturating_sub(wanting).min(asked);
        // Each transfer costs a round trip, so while jobs wait for a permit, the node claims only a quarter of its limit or more.
        if self.held.ordinary_waiting() > 0 && free < asked.min(most / 4) { 0 } else { free }
    }

    /// Starts ordinary jobs as long as there are permits and the lease is provably valid (rule 21).
    pub(super) fn start_handlers(&mut self, now: Duration) -> Option<Duration> {
        if self.starvation.is_on() {
            return None;
        }
        let too_long = longest_wait(self.parts.topic.timeout);
        while self.permits_used() < self.permits.granted() && !self.takes_no_more() {
            let (id, _) = self.held.next_to_start()?;
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
