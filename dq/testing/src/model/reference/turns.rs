//! Turns, leases and notes: what a node says between claiming and settling (rules 6, 7, 8, 15, 17, 19 and 21).

use std::time::Duration;

use super::Topic;
use dq::job::{JobId, NodeId, Token, Turn};
use dq::store::step::{
    Begin, Exhaust, Hold, LONGEST_LEASE, Note, Noted, Reconcile, Reconciled, Release, Standing, Turned,
};
use dq::time::Timestamp;

impl Topic {
    pub(super) fn standing(&self, node: &NodeId) -> Standing {
        Standing { turn: self.turns.get(node).copied().unwrap_or_default(), rows: self.rows(node).len() }
    }

    /// Whether a request names the node's last turn; a missing one is another.
    pub(super) fn is_current(&self, node: &NodeId, heard: Turn) -> bool {
        self.turns.get(node) == Some(&heard)
    }

    pub(super) fn next_turn(&mut self, node: &NodeId, heard: Turn) {
        let stored = self.turns.get(node).copied().unwrap_or_default();
        self.turns.insert(node.clone(), stored.max(heard).next());
    }

    /// The lease goes with the last row.
    pub(super) fn tidy_lease(&mut self, node: &NodeId) {
        if self.rows(node).is_empty() {
            self.leases.remove(node);
        }
    }

    pub(super) fn renew(&mut self, node: &NodeId, heard: Turn, lease: Duration) {
        self.tidy_lease(node);
        if self.is_current(node, heard) && !self.rows(node).is_empty() {
            self.leases.insert(node.clone(), self.now().after(lease.min(LONGEST_LEASE)));
        }
    }

    pub(super) fn holds(&self, node: &NodeId, id: &JobId, token: Token) -> bool {
        self.run(id).is_some_and(|run| run.node == *node && run.token == token)
    }

    pub(in super::super) fn hold(&mut self, node: &NodeId, request: &Hold) -> Standing {
        self.renew(node, request.heard, request.lease);
        self.standing(node)
    }

    /// Whether something may be noted of this run.
    fn note(&self, node: &NodeId, id: &JobId, token: Token) -> Note {
        if !self.holds(node, id, token) {
            return Note::Stale;
        }
        let end = self.run(id).and_then(|run| run.end);
        if end.is_some_and(|end| end.fence.is_none()) { Note::Ended } else { Note::Done }
    }

    pub(in super::super) fn begin(&mut self, node: &NodeId, request: &Begin) -> Noted {
        let note = self.note(node, &request.id, request.token);
        if note == Note::Done {
            self.run_mut(&request.id).expect("it is RUNNING").begun = true;
        }
        self.renew(node, request.heard, request.lease);
        Noted { standing: self.standing(node), note }
    }

    pub(in super::super) fn exhaust(&mut self, node: &NodeId, request: &Exhaust) -> Noted {
        let note = self.note(node, &request.id, request.token);
        if note == Note::Done {
            let job = self.jobs.get_mut(&request.id).expect("it is RUNNING");
            let parked_by = job.front().parked_by;
            job.write(Some(&request.front), parked_by);
        }
        self.renew(node, request.heard, request.lease);
        Noted { standing: self.standing(node), note }
    }

    pub(in super::super) fn reconcile(&mut self, node: &NodeId, request: &Reconcile) -> Turned<Reconciled> {
        match &request.after {
            None => self.next_turn(node, request.heard),
            Some(_) if !self.is_current(node, request.heard) => return Turned::Reconcile(self.standing(node)),
            Some(_) => {}
        }
        let mut rows = self.rows(node);
        rows.retain(|(id, _)| request.after.as_ref().is_none_or(|after| id > after));
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let next = rows.last().filter(|_| more).map(|(id, _)| id.clone());
        Turned::Done(Reconciled { standing: self.standing(node), rows, next })
    }

    pub(in super::super) fn release(&mut self, node: &NodeId, request: &Release) -> Standing {
        self.next_turn(node, request.heard);
        self.roles.leave(node, true);
        if !self.rows(node).is_empty() {
            self.leases.insert(node.clone(), Timestamp::EPOCH);
        }
        self.standing(node)
    }
}
