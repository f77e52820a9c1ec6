//! The steps that claim: `transfer` takes what is due, `sweep` what has been parked for too long.

use std::time::Duration;

use super::now::Now;
use super::places::Shelf;
use super::renew::lease_end;
use super::topic::{Topic, within};
use crate::job::{Fence, NodeId, Sequence};
use crate::store::StoreError;
use crate::store::step::{Claim, Sequenced, Sweep, Swept, Transfer, Transferred};
use crate::time::{Timestamp, millis_ceil};

impl Topic {
    /// DELAYED → RUNNING. O(limit log n).
    pub(crate) fn transfer(
        &mut self,
        now: Now,
        node: &NodeId,
        request: &Transfer,
    ) -> Result<Sequenced<Transferred>, StoreError> {
        within("the limit of a transfer", request.limit)?;
        if let Err(lease_status) = self.check_sequence(now, node, request.last_seen) {
            return Ok(Sequenced::Reconcile(lease_status));
        }
        let due = (Shelf::Delayed, now.floor(), request.limit);
        let claims = self.claim(now, node, due, (request.last_seen, request.lease));
        self.cut_leases(now);
        let waiting = self.jobs.shelf(Shelf::Delayed);
        let (head, more) = (waiting.head(), waiting.is_due(now.floor()));
        let (role, told) = self.roles.tell(node, now, head, now.after(request.fallback));
        let others = self.jobs.holders().iter().filter(|(other, _)| *other != node);
        let foreign = others.min_by_key(|(_, holder)| holder.lease);
        Ok(Sequenced::Done(Transferred {
            lease_status: self.lease_status(node),
            clock: now.floor(),
            role,
            sleep: now.until(told).min(request.fallback),
            more,
            foreign_lease: foreign.map(|(other, holder)| (other.clone(), holder.lease)),
            claims,
            dropped: Vec::new(),
        }))
    }

    /// DEAD and DONE past their retention → gone; aged UNACKED → RUNNING. O(limit log n).
    pub(crate) fn sweep(&mut self, now: Now, node: &NodeId, request: &Sweep) -> Result<Sequenced<Swept>, StoreError> {
        within("the limit of an age", request.limit)?;
        if let Err(lease_status) = self.check_sequence(now, node, request.last_seen) {
            return Ok(Sequenced::Reconcile(lease_status));
        }
        let pruned_done = self.prune(Shelf::Done, request.limit, |_, until| until <= now.floor());
        let dead_before = before(now, request.dead_kept);
        let is_over = |kept: usize, since: Timestamp| kept > request.dead_most || since <= dead_before;
        let pruned_dead = self.prune(Shelf::Dead, request.limit, is_over);
        let aged = before(now, request.unacked_age);
        let claims = self.claim(now, node, (Shelf::Unacked, aged, request.limit), (request.last_seen, request.lease));
        let dead = self.jobs.shelf(Shelf::Dead);
        let more = self.jobs.shelf(Shelf::Done).is_due(now.floor())
            || dead.head().is_some_and(|since| is_over(dead.len(), since))
            || self.jobs.shelf(Shelf::Unacked).is_due(aged);
        Ok(Sequenced::Done(Swept {
            lease_status: self.lease_status(node),
            clock: now.floor(),
            claims,
            pruned_dead,
            pruned_done,
            more,
        }))
    }

    /// Claims what is on a shelf at a time or before, takes a turn, and renews the lease where rows are.
    fn claim(
        &mut self,
        now: Now,
        node: &NodeId,
        what: (Shelf, Timestamp, usize),
        (last_seen, lease): (Sequence, Duration),
    ) -> Vec<Claim> {
        let fence = Fence(now.micros().max(self.fence.0 + 1));
        let end = lease_end(now, lease);
        let claims = self.jobs.claim(what, node, (fence, end));
        if !claims.is_empty() {
            self.fence = fence;
        }
        if let Some(holder) = self.jobs.holder_mut(node) {
            holder.lease = end;
        }
        self.take_sequence(now, node, last_seen);
        claims
    }

    /// Forgets the earliest jobs of a shelf while `is_over` (their number, their time), at most `limit`.
    fn prune(&mut self, shelf: Shelf, limit: usize, is_over: impl Fn(usize, Timestamp) -> bool) -> usize {
        let mut pruned = 0;
        while pruned < limit
            && let waiting = self.jobs.shelf(shelf)
            && let Some((at, id)) = waiting.first()
            && is_over(waiting.len(), *at)
        {
            let id = id.clone();
            self.jobs.remove(&id);
            pruned += 1;
        }
        pruned
    }
}

/// What got there at this time or before has been there for `period`.
fn before(now: Now, period: Duration) -> Timestamp {
    Timestamp::from_millis(now.floor().as_millis().saturating_sub(millis_ceil(period)))
}
