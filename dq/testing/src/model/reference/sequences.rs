//! Sequence numbers, leases and notes: the steps `renew`, `isolate`, `exhaust`, `reconcile` and `release` (rules 6, 7, 8, 15,
//! 17, 19 and 21).

use std::time::Duration;

use super::Topic;
use dq::job::{JobId, NodeId, Sequence, Token};
use dq::store::step::{
    Exhaust, Isolate, Isolated, LONGEST_LEASE, LeaseStatus, NoteVerdict, Noted, Reconcile, Reconciled, Release, Renew,
    RowCursor, Sequenced,
};
use dq::time::Timestamp;

impl Topic {
    pub(super) fn lease_status(&self, node: &NodeId) -> LeaseStatus {
        LeaseStatus { sequence: self.sequences.get(node).copied().unwrap_or_default(), rows: self.rows(node).len() }
    }

    /// Whether a request names the node's sequence number; an unknown node has none, so nothing matches.
    pub(super) fn is_current(&self, node: &NodeId, last_seen: Sequence) -> bool {
        self.sequences.get(node) == Some(&last_seen)
    }

    pub(super) fn next_sequence(&mut self, node: &NodeId, last_seen: Sequence) {
        let stored = self.sequences.get(node).copied().unwrap_or_default();
        self.sequences.insert(node.clone(), stored.max(last_seen).next());
    }

    /// Removes the lease of a node without rows.
    pub(super) fn drop_empty_lease(&mut self, node: &NodeId) {
        if self.rows(node).is_empty() {
            self.leases.remove(node);
        }
    }

    pub(super) fn extend_lease(&mut self, node: &NodeId, last_seen: Sequence, lease: Duration) {
        self.drop_empty_lease(node);
        if self.is_current(node, last_seen) && !self.rows(node).is_empty() {
            self.leases.insert(node.clone(), self.now().after(lease.min(LONGEST_LEASE)));
        }
    }

    pub(super) fn holds(&self, node: &NodeId, id: &JobId, token: Token) -> bool {
        self.run(id).is_some_and(|run| run.node == *node && run.token == token)
    }

    pub(in super::super) fn renew(&mut self, node: &NodeId, request: &Renew) -> LeaseStatus {
        self.extend_lease(node, request.last_seen, request.lease);
        self.lease_status(node)
    }

    /// Whether a step may note something about this run.
    fn note(&self, node: &NodeId, id: &JobId, token: Token) -> NoteVerdict {
        if !self.holds(node, id, token) {
            return NoteVerdict::Stale;
        }
        let end = self.run(id).and_then(|run| run.end);
        if end.is_some_and(|end| end.fence.is_none()) { NoteVerdict::Ended } else { NoteVerdict::Done }
    }

    pub(in super::super) fn isolate(&mut self, node: &NodeId, request: &Isolate) -> Isolated {
        let mut notes = Vec::new();
        let is_current = self.is_current(node, request.last_seen);
        for (id, token) in request.runs.iter().filter(|_| is_current) {
            let note = self.note(node, id, *token);
            if note == NoteVerdict::Done {
                self.run_mut(id).expect("the job is RUNNING").isolation = Some(request.isolation);
            }
            notes.push(note);
        }
        self.extend_lease(node, request.last_seen, request.lease);
        Isolated { lease_status: self.lease_status(node), notes: is_current.then_some(notes) }
    }

    pub(in super::super) fn exhaust(&mut self, node: &NodeId, request: &Exhaust) -> Noted {
        let note = self.note(node, &request.id, request.token);
        if note == NoteVerdict::Done {
            let job = self.jobs.get_mut(&request.id).expect("the job is RUNNING");
            let parked_by = job.metadata().parked_by;
            job.write(Some(&request.metadata), parked_by);
        }
        self.extend_lease(node, request.last_seen, request.lease);
        Noted { lease_status: self.lease_status(node), note }
    }

    pub(in super::super) fn reconcile(&mut self, node: &NodeId, request: &Reconcile) -> Sequenced<Reconciled> {
        match &request.after {
            None => self.next_sequence(node, request.last_seen),
            Some(_) if !self.is_current(node, request.last_seen) => {
                return Sequenced::Reconcile(self.lease_status(node));
            }
            Some(_) => {}
        }
        let mut rows = self.rows(node);
        rows.retain(|(id, _)| request.after.as_ref().is_none_or(|after| RowCursor::behind(id) > *after));
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let next = rows.last().filter(|_| more).map(|(id, _)| RowCursor::behind(id));
        Sequenced::Done(Reconciled { lease_status: self.lease_status(node), rows, next })
    }

    pub(in super::super) fn release(&mut self, node: &NodeId, request: &Release) -> LeaseStatus {
        self.next_sequence(node, request.last_seen);
        self.roles.free(node, true);
        if !self.rows(node).is_empty() {
            self.leases.insert(node.clone(), Timestamp::EPOCH);
        }
        self.lease_status(node)
    }
}
