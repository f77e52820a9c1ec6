//! The steps around sequence numbers and leases: `renew`, `reconcile`, `release` and `scan` (rules 2, 6 to 8, 20 and 21),
//! and what the other steps do to them; and those that note something about a running job, which stays RUNNING: `isolate` and
//! `exhaust` (rules 15 and 19).
//!
//! A request that names another sequence number than the stored one claims and renews nothing: the store may be executing it
//! late.

use std::time::Duration;

use super::now::Now;
use super::places::{Place, SlotMut};
use super::topic::Topic;
use crate::job::{JobId, Metadata, NodeId, Sequence, Token};
use crate::store::step::{
    Exhaust, Isolate, Isolated, LeaseStatus, MAX_LEASE, Note, NoteVerdict, Noted, Noting, Reconcile, Reconciled,
    Release, Renew, RowCursor, Scanned, Sequenced,
};
use crate::store::{End, Ended, PendingCommand, StoreError, Transition};
use crate::time::Timestamp;

impl Topic {
    pub(super) fn lease_status(&self, node: &NodeId) -> LeaseStatus {
        LeaseStatus { sequence: self.sequences.get(node).unwrap_or_default(), rows: self.jobs.rows(node) }
    }

    /// Fails with the answer if `last_seen` is not the stored number: then the step must do nothing.
    pub(super) fn check_sequence(&mut self, now: Now, node: &NodeId, last_seen: Sequence) -> Result<(), LeaseStatus> {
        if self.sequences.is_current(now, node, last_seen) { Ok(()) } else { Err(self.lease_status(node)) }
    }

    /// Renews the lease if the request names the stored sequence number and the node has rows.
    pub(super) fn extend_lease(&mut self, now: Now, node: &NodeId, last_seen: Sequence, lease: Duration) {
        if self.sequences.is_current(now, node, last_seen) {
            self.jobs.set_lease(node, lease_end(now, lease));
        }
    }

    /// Cuts leases that end later than the longest lease from now, as after a clock that jumped back (rule 20).
    pub(super) fn cut_leases(&mut self, now: Now) {
        self.jobs.cut_leases(now.floor().after(MAX_LEASE));
    }

    /// Renews the lease.
    pub(crate) fn renew(&mut self, now: Now, node: &NodeId, request: Renew) -> LeaseStatus {
        self.extend_lease(now, node, request.last_seen, request.lease);
        self.lease_status(node)
    }

    /// Takes a sequence number with the first page of rows; renews nothing.
    pub(crate) fn reconcile(
        &mut self,
        now: Now,
        node: &NodeId,
        request: &Reconcile,
    ) -> Result<Sequenced<Reconciled>, StoreError> {
        if request.after.is_none() {
            self.sequences.take(now, node, request.last_seen);
        } else if let Err(lease_status) = self.check_sequence(now, node, request.last_seen) {
            return Ok(Sequenced::Reconcile(lease_status));
        }
        let after = request.after.as_ref().and_then(|cursor| JobId::new(cursor.as_str().split_once(':')?.1).ok());
        let (rows, more) = self.rows_after(node, after.as_ref(), request.limit.max(1));
        let next = if more { rows.last().map(|(id, _)| RowCursor::behind(id)) } else { None };
        Ok(Sequenced::Done(Reconciled { lease_status: self.lease_status(node), rows, next, born: 0 }))
    }

    fn rows_after(&self, node: &NodeId, after: Option<&JobId>, limit: usize) -> (Vec<(JobId, Token)>, bool) {
        let Some(holder) = self.jobs.holders().get(node) else { return (Vec::new(), false) };
        let mut ids = holder.rows.after(after);
        let rows = ids.by_ref().take(limit).filter_map(|id| match &self.jobs.get(id)?.place {
            Place::Running(run) => Some((id.clone(), run.token)),
            Place::Timed(..) => None,
        });
        (rows.collect(), ids.next().is_some())
    }

    /// Ends a node cleanly: frees its roles, and lets other nodes reclaim its rows at once.
    pub(crate) fn release(&mut self, now: Now, node: &NodeId, request: Release) -> LeaseStatus {
        self.sequences.take(now, node, request.last_seen);
        self.jobs.set_lease(node, Timestamp::EPOCH);
        self.free_roles(node);
        self.free_publisher(node);
        self.lease_status(node)
    }

    /// Reads all leases, and compares the number of records with the sum of all places. O(nodes).
    pub(crate) fn scan(&mut self, now: Now) -> Scanned {
        self.cut_leases(now);
        let leases = self.jobs.holders().iter().map(|(node, holder)| (node.clone(), holder.lease));
        Scanned {
            clock: now.floor(),
            leases: leases.collect(),
            records: self.jobs.len(),
            places: self.jobs.in_places(),
            follow_ups: self.outbox.waiting() > 0,
            state: self.told(now),
            left: self.left(self.gate(now)),
        }
    }
}

impl Topic {
    /// Notes how quarantined jobs are about to run, so that a crash of their node is charged accordingly. A late request notes
    /// nothing: other handlers may have started beside a job that it calls alone.
    pub(crate) fn isolate(&mut self, now: Now, node: &NodeId, request: &Isolate) -> Result<Isolated, StoreError> {
        let notes = self.sequences.is_current(now, node, request.last_seen).then(|| {
            let runs = request.runs.iter();
            let verdict = |(id, token): &(JobId, Token)| match request.isolation {
                Some(isolation) => self.note(node, id, *token, |slot| slot.set_isolation(isolation)),
                None => self.end_of(node, id, *token),
            };
            runs.map(verdict).collect()
        });
        self.extend_lease(now, node, request.last_seen, request.lease);
        Ok(Isolated { lease_status: self.lease_status(node), notes })
    }

    /// Under which end a run is. Changes nothing.
    fn end_of(&self, node: &NodeId, id: &JobId, token: Token) -> NoteVerdict {
        let slot = self.jobs.get(id).filter(|_| self.jobs.is_run(node, id, token));
        let Some(slot) = slot else { return NoteVerdict::Stale };
        match slot.pending().filter(|pending| pending.is_unfenced_end()).and_then(|pending| pending.end) {
            Some(End { how: Ended::Cancelled, .. }) => NoteVerdict::Cancelled,
            Some(_) => NoteVerdict::Ended,
            None => NoteVerdict::Done,
        }
    }

    /// Notes that no attempt is left.
    pub(crate) fn exhaust(&mut self, now: Now, node: &NodeId, request: Exhaust) -> Noted {
        let Exhaust { last_seen, lease, id, token, metadata } = request;
        let what = Noting::State(Metadata { exhausted: true, ..metadata });
        self.note_of_run(now, node, Note { last_seen, lease, id, token, number: 0, what })
    }

    /// Notes the metadata of a run, but the parking fence, which only the store sets; or its progress. A note that comes after a later one
    /// was on its way for too long.
    pub(crate) fn note_of_run(&mut self, now: Now, node: &NodeId, request: Note) -> Noted {
        let (id, number, mut told) = (&request.id, request.number, None);
        let note = self.note(node, id, request.token, |slot| {
            if number > 0 {
                let Some(notes) = slot.notes().filter(|notes| number > notes.number) else { return };
                notes.number = number;
            }
            match request.what {
                Noting::State(metadata) => {
                    let fixed = slot.record.fixed();
                    // A checkpoint that comes once no attempt is left is late, too.
                    if metadata.exhausted || !fixed.exhausted {
                        slot.set_metadata(&Metadata { parked_by: fixed.parked_by, ..metadata });
                    }
                }
                Noting::Progress(progress) => told = slot.notes().map(|notes| notes.progress.insert(progress).clone()),
            }
        });
        if let Some(progress) = told {
            self.record.note(id, || Transition::Progressed { progress });
        }
        self.extend_lease(now, node, request.last_seen, request.lease);
        Noted { lease_status: self.lease_status(node), note }
    }

    fn note(&mut self, node: &NodeId, id: &JobId, token: Token, write: impl FnOnce(&mut SlotMut<'_>)) -> NoteVerdict {
        if !self.jobs.is_run(node, id, token) {
            return NoteVerdict::Stale;
        }
        let mut slot = self.jobs.get_mut(id).expect("a run has a slot");
        if slot.pending().is_some_and(PendingCommand::is_unfenced_end) {
            return NoteVerdict::Ended;
        }
        write(&mut slot);
        NoteVerdict::Done
    }
}

/// The end of a lease that is granted now.
pub(super) fn lease_end(now: Now, lease: Duration) -> Timestamp {
    now.floor().after(lease.min(MAX_LEASE))
}
