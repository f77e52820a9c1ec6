//! Turns and leases: `hold`, `reconcile`, `release`, and what other steps do to them (PROTOCOL.md rules 6 to 8).
//!
//! A request that names another turn than the stored one claims and renews nothing: it may be an old one, executed late.

use std::ops::Bound;
use std::time::Duration;

use super::now::Now;
use super::places::Place;
use super::topic::{Topic, within};
use crate::job::{JobId, NodeId, Token, Turn};
use crate::store::StoreError;
use crate::store::step::{Hold, LONGEST_LEASE, Reconcile, Reconciled, Release, Standing, Turned};
use crate::time::Timestamp;

impl Topic {
    pub(super) fn standing(&self, node: &NodeId) -> Standing {
        Standing { turn: self.turns.get(node).unwrap_or_default(), rows: self.jobs.rows(node) }
    }

    /// `Err` with the answer when the turn is another: then the step must do nothing.
    pub(super) fn check_turn(&mut self, now: Now, node: &NodeId, heard: Turn) -> Result<(), Standing> {
        if self.turns.names(now, node, heard) { Ok(()) } else { Err(self.standing(node)) }
    }

    pub(super) fn take_turn(&mut self, now: Now, node: &NodeId, heard: Turn) {
        self.turns.take(now, node, heard);
    }

    /// Renews the lease for a request that named the turn, and only where rows are.
    pub(super) fn renew(&mut self, now: Now, node: &NodeId, heard: Turn, lease: Duration) {
        if self.turns.names(now, node, heard)
            && let Some(holder) = self.jobs.holder_mut(node)
        {
            holder.lease = lease_end(now, lease);
        }
    }

    /// A lease further ahead than the longest, as after a clock that jumped back, is cut to that (rule 20).
    pub(super) fn cut_leases(&mut self, now: Now) {
        let longest = now.floor().after(LONGEST_LEASE);
        for holder in self.jobs.holders_mut() {
            holder.lease = holder.lease.min(longest);
        }
    }

    /// Renews the lease.
    pub(crate) fn hold(&mut self, now: Now, node: &NodeId, request: Hold) -> Standing {
        self.renew(now, node, request.heard, request.lease);
        self.standing(node)
    }

    /// A new turn with its first page of rows; renews nothing.
    pub(crate) fn reconcile(
        &mut self,
        now: Now,
        node: &NodeId,
        request: &Reconcile,
    ) -> Result<Turned<Reconciled>, StoreError> {
        within("the limit of a reconcile", request.limit)?;
        if request.after.is_none() {
            self.take_turn(now, node, request.heard);
        } else if let Err(standing) = self.check_turn(now, node, request.heard) {
            return Ok(Turned::Reconcile(standing));
        }
        let (rows, more) = self.rows_behind(node, request.after.as_ref(), request.limit.max(1));
        let next = if more { rows.last().map(|(id, _)| id.clone()) } else { None };
        Ok(Turned::Done(Reconciled { standing: self.standing(node), rows, next }))
    }

    fn rows_behind(&self, node: &NodeId, after: Option<&JobId>, limit: usize) -> (Vec<(JobId, Token)>, bool) {
        let Some(holder) = self.jobs.holders().get(node) else { return (Vec::new(), false) };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut ids = holder.rows.range::<JobId, _>((from, Bound::Unbounded));
        let rows = ids.by_ref().take(limit).filter_map(|id| match &self.jobs.get(id)?.place {
            Place::Running(run) => Some((id.clone(), run.token)),
            Place::On(..) => None,
        });
        (rows.collect(), ids.next().is_some())
    }

    /// The clean end of a node: its roles are free, and what it still holds is free for reclaim at once.
    pub(crate) fn release(&mut self, now: Now, node: &NodeId, request: Release) -> Standing {
        self.take_turn(now, node, request.heard);
        if let Some(holder) = self.jobs.holder_mut(node) {
            holder.lease = Timestamp::EPOCH;
        }
        self.free_roles(node);
        self.free_caster(node);
        self.standing(node)
    }
}

/// When a lease that is given now ends.
pub(super) fn lease_end(now: Now, lease: Duration) -> Timestamp {
    now.floor().after(lease.min(LONGEST_LEASE))
}
