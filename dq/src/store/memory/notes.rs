//! The steps that note something about a running job, which stays RUNNING: `isolate` and `exhaust` (rules 15 and 19).

use super::now::Now;
use super::pending::PendingCommand;
use super::places::SlotMut;
use super::topic::{Topic, within};
use crate::job::{JobId, NodeId, Token};
use crate::store::StoreError;
use crate::store::step::{Exhaust, Isolate, Isolated, NoteVerdict, Noted};

impl Topic {
    /// Notes how quarantined jobs are about to run, so that a crash of their node is charged accordingly. A late request notes
    /// nothing: other handlers may have started beside a job that it calls alone.
    pub(crate) fn isolate(&mut self, now: Now, node: &NodeId, request: &Isolate) -> Result<Isolated, StoreError> {
        within("the number of runs to isolate", request.runs.len())?;
        let notes = self.sequences.is_current(now, node, request.last_seen).then(|| {
            let runs = request.runs.iter();
            runs.map(|(id, token)| self.note(node, id, *token, |slot| slot.set_isolation(request.isolation))).collect()
        });
        self.extend_lease(now, node, request.last_seen, request.lease);
        Ok(Isolated { lease_status: self.lease_status(node), notes })
    }

    /// Notes that no attempt is left; keeps the parking fence, which only the store sets.
    pub(crate) fn exhaust(&mut self, now: Now, node: &NodeId, request: Exhaust) -> Noted {
        let mut metadata = request.metadata;
        let note = self.note(node, &request.id, request.token, |slot| {
            metadata.exhausted = true;
            metadata.parked_by = slot.record.fixed().parked_by;
            slot.set_metadata(&metadata);
        });
        self.extend_lease(now, node, request.last_seen, request.lease);
        Noted { lease_status: self.lease_status(node), note }
    }

    fn note(&mut self, node: &NodeId, id: &JobId, token: Token, write: impl FnOnce(&mut SlotMut<'_>)) -> NoteVerdict {
        if !self.jobs.is_run(node, id, token) {
            return NoteVerdict::Stale;
        }
        let mut slot = self.jobs.get_mut(id).expect("a run has a slot");
        let pending = slot.run().and_then(|run| run.pending.as_deref());
        if pending.is_some_and(PendingCommand::is_unfenced_end) {
            return NoteVerdict::Ended;
        }
        write(&mut slot);
        NoteVerdict::Done
    }
}
