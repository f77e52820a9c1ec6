//! The steps that end runs: `settle` applies outcomes (rule 10), `reclaim` takes the jobs of a node whose lease
//! has expired (rules 19 and 20). Both end a run with [`Topic::leave_running`].

use super::exit::Exit;
use super::now::Now;
use super::places::{Room, Slot, fitting};
use super::topic::Topic;
use crate::job::{JobId, NodeId};
use crate::store::step::{Change, Outcome, Reclaim, Reclaimed, Settle, Settled, Verdict};
use crate::store::{StoreError, Transition};
use crate::time::Timestamp;

impl Topic {
    /// RUNNING → wherever the outcomes say; renews the lease.
    ///
    /// Only the token decides: an outcome of another run changes nothing, whatever sequence number and lease say. A second
    /// outcome of the same run finds the row gone and is stale.
    pub(crate) fn settle(&mut self, now: Now, node: &NodeId, request: Settle) -> Result<Settled, StoreError> {
        let mut verdicts = Vec::with_capacity(request.outcomes.len());
        let mut budget = Room::new(request.bytes);
        let mut ticks = Vec::new();
        for (place, outcome) in request.outcomes.into_iter().enumerate() {
            if matches!(outcome.change, Change::Tick(_)) {
                ticks.push((place, outcome));
                verdicts.push(Verdict::Stale);
                continue;
            }
            let is_plain_ack = outcome.change == Change::Ack && outcome.metadata.is_none();
            if is_plain_ack && budget.is_left() && self.jobs.remove_plain_run(node, &outcome.id, outcome.token) {
                budget.takes(0);
                self.record.note(&outcome.id, || Transition::Done { by: node.to_string() });
                self.record.ran(&outcome);
                verdicts.push(Verdict::Done);
                continue;
            }
            verdicts.push(self.settle_one(now, node, outcome, &mut budget));
        }
        // A tick adds jobs, so it comes behind the outcomes of others.
        for (place, outcome) in ticks {
            verdicts[place] = self.settle_one(now, node, outcome, &mut budget);
        }
        self.extend_lease(now, node, request.last_seen, request.lease);
        Ok(Settled { lease_status: self.lease_status(node), verdicts })
    }

    fn settle_one(&mut self, now: Now, node: &NodeId, outcome: Outcome, budget: &mut Room) -> Verdict {
        if !self.jobs.is_run(node, &outcome.id, outcome.token) {
            return Verdict::Stale;
        }
        if !budget.takes(self.replacement_size(&outcome.id)) {
            return Verdict::Later;
        }
        self.record.ran(&outcome);
        self.leave_running(now, &outcome.id, Exit::Settled(outcome.change, outcome.metadata));
        Verdict::Done
    }

    pub(super) fn replacement_size(&self, id: &JobId) -> usize {
        self.jobs.get(id).map_or(0, Slot::replacement_size)
    }

    /// RUNNING → where each row was claimed from. Does nothing unless the lease has expired and is the one that the
    /// reclaimer saw.
    pub(crate) fn reclaim(&mut self, now: Now, request: &Reclaim) -> Result<Reclaimed, StoreError> {
        let Some(holder) = self.jobs.holders().get(&request.node) else { return Ok(Reclaimed::default()) };
        if holder.lease != request.seen || holder.lease > now.floor() {
            return Ok(Reclaimed::default());
        }
        let max_crashes = (holder.lease != Timestamp::EPOCH).then_some(request.max_crashes);
        let mut rows: Vec<JobId> = holder.rows.after(None).take(request.limit).cloned().collect();
        rows.truncate(fitting(rows.iter().map(|id| self.replacement_size(id)), request.bytes));
        for id in &rows {
            self.leave_running(now, id, Exit::Reclaimed { max_crashes });
        }
        Ok(Reclaimed { moved: rows.len(), left: self.jobs.rows(&request.node) })
    }
}
