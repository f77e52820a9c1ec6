//! The steps that note something of a running job: `isolate` and `exhaust` (PROTOCOL.md rules 15 and 19). It stays RUNNING.

use std::time::Duration;

use super::now::Now;
use super::places::{Place, Run, Slot};
use super::topic::Topic;
use crate::job::{JobId, NodeId, Record, Sequence, Token};
use crate::store::step::{Exhaust, Isolate, NoteVerdict, Noted};

impl Topic {
    /// Notes that the job is about to run alone, so that a crash of its node is charged to it.
    pub(crate) fn isolate(&mut self, now: Now, node: &NodeId, request: &Isolate) -> Noted {
        let note = self.note(node, &request.id, request.token, |run, _| run.isolated = true);
        self.noted(now, node, (request.last_seen, request.lease), note)
    }

    /// Writes that no attempt is left; keeps the parking fence, which is the store's.
    pub(crate) fn exhaust(&mut self, now: Now, node: &NodeId, request: Exhaust) -> Noted {
        let mut metadata = request.metadata;
        let note = self.note(node, &request.id, request.token, |_, record| {
            metadata.exhausted = true;
            metadata.parked_by = record.fixed().parked_by;
            *record = record.with_metadata(&metadata);
        });
        self.noted(now, node, (request.last_seen, request.lease), note)
    }

    fn note(
        &mut self,
        node: &NodeId,
        id: &JobId,
        token: Token,
        write: impl FnOnce(&mut Run, &mut Record),
    ) -> NoteVerdict {
        let Some(Slot { record, place: Place::Running(run), .. }) = self.jobs.run_mut(node, id, token) else {
            return NoteVerdict::Stale;
        };
        if run.pending.as_ref().is_some_and(|pending| pending.is_unfenced_end()) {
            return NoteVerdict::Ended;
        }
        write(run, record);
        NoteVerdict::Done
    }

    fn noted(&mut self, now: Now, node: &NodeId, (last_seen, lease): (Sequence, Duration), note: NoteVerdict) -> Noted {
        self.extend_lease(now, node, last_seen, lease);
        Noted { lease_status: self.lease_status(node), note }
    }
}
