//! The steps that claim: `transfer` claims jobs that are due (rules 4 to 9), `sweep` claims aged UNACKED jobs and prunes
//! (rule 25).

use std::time::Duration;

use super::leases::lease_end;
use super::now::Now;
use super::places::{ClaimTerms, Jobs, Wanted, spends};
use super::topic::Topic;
use crate::job::{NodeId, Sequence, State, Weight};
use crate::store::step::{Claim, Role, Sequenced, Sweep, Swept, Transfer, Transferred};
use crate::store::{Gate, Pace, StoreError, Transition};
use crate::time::{Timestamp, millis_ceil};

impl Topic {
    /// DELAYED → RUNNING. O(limit log n).
    pub(crate) fn transfer(
        &mut self,
        now: Now,
        node: &NodeId,
        request: &Transfer,
    ) -> Result<Sequenced<Transferred>, StoreError> {
        if let Err(lease_status) = self.check_sequence(now, node, request.last_seen) {
            return Ok(Sequenced::Reconcile(lease_status));
        }
        self.code_rates = (self.by_code.rate, self.by_code.group_rate);
        let (ahead, gate) = (now.floor().after(request.lookahead), self.gate(now));
        self.jobs.end_pauses(now.floor());
        self.jobs.open_rates(self.group_rate(), now.micros());
        let latest = gate.latest(ahead);
        let (slots, pace) = (self.slots(), self.pace(now));
        let is_gated = slots.are_bounded() || pace.is_some() || self.jobs.are_ranked();
        let is_tick_due = |latest: &Timestamp| self.jobs.next_tick().is_some_and(|tick| tick <= *latest);
        // What else is due is for the next transfer.
        let ticks = latest.filter(|latest| is_gated && is_tick_due(latest));
        let limit = slots.take(pace.map_or(request.limit, |pace| request.limit.min(pace.room())));
        let (claims, refused) = if let Some(until) = ticks {
            let (limit, bytes) = (request.limit, request.bytes);
            let take = |jobs: &mut Jobs, terms| (jobs.claim_ticks(until, limit, bytes, node, terms), None);
            self.claim_by(now, node, request.last_seen, request.lease, take)
        } else {
            let (place, bytes) = (State::Delayed, request.bytes);
            let wanted = latest.map(|until| Wanted { place, until, limit, bytes, pace });
            self.claim(now, node, wanted, request.last_seen, request.lease)
        };
        let opens = self.spend(now, pace, &claims, refused);
        self.record.claimed(now, node, &claims, true);
        self.cut_leases(now);
        let was_shut = self.shut.is_some();
        let (more, head) = if ticks.is_some() {
            (true, Some(now.floor()))
        } else {
            let more = latest.is_some_and(|latest| self.jobs.is_due(latest));
            self.shut = slots.shut_by(claims.len()).filter(|_| more);
            let more = more && self.shut.is_none() && opens.is_none();
            (more, self.next_claim(gate, Transfer::comes_ahead(request.lookahead), opens))
        };
        let (role, wake_at) = self.roles.assign(node, now, head, now.after(request.fallback));
        // The watcher sleeps until a slot is free, and does not know of what is due later.
        if was_shut && self.shut.is_none() && role != Some(Role::Watcher) {
            head.into_iter().for_each(|head| self.signal_head(now, head));
        }
        let others = self.jobs.holders().iter().filter(|(other, _)| *other != node);
        let earliest = others.min_by_key(|(_, holder)| holder.lease);
        Ok(Sequenced::Done(Transferred {
            lease_status: self.lease_status(node),
            clock: now.floor(),
            micros: now.micros(),
            role,
            sleep: now.until(wake_at).min(request.fallback),
            more,
            foreign_lease: earliest.map(|(other, holder)| (other.clone(), holder.lease)),
            claims,
            dropped: Vec::new(),
            state: self.told(now),
            left: self.left(gate),
        }))
    }

    /// DEAD and DONE jobs past their retention → gone; aged UNACKED jobs → RUNNING. O(limit log n).
    pub(crate) fn sweep(&mut self, now: Now, node: &NodeId, request: &Sweep) -> Result<Sequenced<Swept>, StoreError> {
        if let Err(lease_status) = self.check_sequence(now, node, request.last_seen) {
            return Ok(Sequenced::Reconcile(lease_status));
        }
        let is_over =
            |kept: usize, until: Timestamp| until <= now.floor() || request.done_max.is_some_and(|most| kept > most);
        let pruned_done = self.prune(State::Done, request.limit, is_over);
        let dead_before = ago(now, request.dead_retention);
        let is_past = |kept: usize, since: Timestamp| kept > request.dead_max || since <= dead_before;
        let pruned_dead = self.prune(State::Dead, request.limit, is_past);
        // A topic that is paused or drains claims nothing here.
        let pace = self.pace(now);
        let limit = self.slots().take(pace.map_or(request.limit, |pace| request.limit.min(pace.room())));
        let aged = (self.gate(now) == Gate::Open).then(|| ago(now, request.park_timeout));
        let (place, bytes) = (State::Unacked, request.bytes);
        let wanted = aged.map(|until| Wanted { place, until, limit, bytes, pace });
        let (claims, refused) = self.claim(now, node, wanted, request.last_seen, request.lease);
        self.spend(now, pace, &claims, refused);
        self.record.claimed(now, node, &claims, false);
        let more_histories = self.histories.forget(now.floor(), request.limit);
        let (dead, done) = (self.jobs.index(State::Dead), self.jobs.index(State::Done));
        let more = more_histories
            || done.head().is_some_and(|until| is_over(done.len(), until))
            || dead.head().is_some_and(|since| is_past(dead.len(), since))
            || aged.is_some_and(|aged| self.jobs.have_parked(aged));
        Ok(Sequenced::Done(Swept {
            lease_status: self.lease_status(node),
            clock: now.floor(),
            claims,
            pruned_dead,
            pruned_done,
            more,
            state: self.told(now),
        }))
    }

    /// Claims what is wanted (`None`: nothing), takes a sequence number, and renews the lease if the node has rows. Returns the jobs, and the weight
    /// of the next one if the rate does not let it start.
    fn claim(
        &mut self,
        now: Now,
        node: &NodeId,
        wanted: Option<Wanted>,
        last_seen: Sequence,
        lease: Duration,
    ) -> (Vec<Claim>, Option<Weight>) {
        let (ageing, seats, rate) = (self.by_code.ageing, self.seats(), self.group_rate());
        let take = |jobs: &mut Jobs, terms| {
            wanted.map_or_else(Default::default, |wanted| jobs.claim(wanted, ageing, seats, rate, node, terms))
        };
        self.claim_by(now, node, last_seen, lease, take)
    }

    /// Claims what `take` gives the node under the fence and the end of the lease.
    fn claim_by(
        &mut self,
        now: Now,
        node: &NodeId,
        last_seen: Sequence,
        lease: Duration,
        take: impl FnOnce(&mut Jobs, ClaimTerms) -> (Vec<Claim>, Option<Weight>),
    ) -> (Vec<Claim>, Option<Weight>) {
        let fence = self.fence.next_at(now.micros());
        let end = lease_end(now, lease);
        let (claims, refused) = take(&mut self.jobs, ClaimTerms { fence, lease: end });
        if !claims.is_empty() {
            self.fence = fence;
        }
        if !claims.is_empty() && claims.len() == self.jobs.rows(node) {
            self.tell_lease(now, node, end);
        }
        self.jobs.set_lease(node, end);
        self.sequences.take(now, node, last_seen);
        (claims, refused)
    }

    /// When the watcher comes for the next claim, where the rate opens at this time: for a job, for a group, or for a tick, which passes the limits.
    fn next_claim(&self, gate: Gate, ahead: Duration, opens: Option<Timestamp>) -> Option<Timestamp> {
        let head = gate.opens(self.jobs.head(), ahead);
        let opening = self.jobs.next_opening().filter(|_| !matches!(gate, Gate::Closed(_)));
        let head = head.into_iter().chain(opening).min().filter(|_| self.shut.is_none());
        let head = head.map(|head| opens.map_or(head, |opens| head.max(opens)));
        head.into_iter().chain(gate.opens(self.jobs.next_tick(), ahead)).min()
    }

    /// These jobs are claimed under this rate, and the next one of this weight is not. Returns when the next may be, if not now.
    fn spend(&mut self, now: Now, pace: Option<Pace>, claims: &[Claim], refused: Option<Weight>) -> Option<Timestamp> {
        let spent = claims.iter().map(|claim| spends(&claim.id, &claim.record)).sum();
        let (next, starts) = pace?.next(spent, refused.map(|weight| u64::from(weight.get())));
        // Also where nothing is claimed: a time that is too far away, as after a clock that jumped back, is cut once.
        if !claims.is_empty() || next > now.micros() {
            self.opens = Some(next);
        }
        (starts > now.micros()).then(|| Timestamp::from_millis(starts.div_ceil(1_000)))
    }

    /// Removes the earliest jobs of a place while `is_past` of (number of jobs, time of the earliest), at most `limit`.
    fn prune(&mut self, place: State, limit: usize, is_past: impl Fn(usize, Timestamp) -> bool) -> usize {
        let mut pruned = 0;
        while pruned < limit
            && let waiting = self.jobs.index(place)
            && let Some((at, id)) = waiting.first()
            && is_past(waiting.len(), *at)
        {
            let id = id.clone();
            self.jobs.remove(&id);
            self.record.note(&id, || Transition::Removed);
            pruned += 1;
        }
        pruned
    }
}

/// The time `period` ago: a job that arrived then or earlier has been in its place for `period`.
fn ago(now: Now, period: Duration) -> Timestamp {
    Timestamp::from_millis(now.floor().as_millis().saturating_sub(millis_ceil(period)))
}
