//! The steps that note something of a running job: `begin` and `exhaust` (PROTOCOL.md rules 15 and 19). It stays RUNNING.

use std::time::Duration;

use super::now::Now;
use super::places::{Place, Run, Slot};
use super::topic::Topic;
use crate::job::{JobId, NodeId, Record, Token, Turn};
use crate::store::step::{Begin, Exhaust, Note, Noted};

impl Topic {
    /// Notes that the job is about to run alone, so that a crash of its node is charged to it.
    pub(crate) fn begin(&mut self, now: Now, node: &NodeId, request: &Begin) -> Noted {
        let note = self.note(node, &request.id, request.token, |run, _| run.begun = true);
        self.noted(now, node, (request.heard, request.lease), note)
    }

    /// Writes that no attempt is left; keeps the parking fence, which is the store's.
    pub(crate) fn exhaust(&mut self, now: Now, node: &NodeId, request: Exhaust) -> Noted {
        let mut front = request.front;
        let note = self.note(node, &request.id, request.token, |_, record| {
            front.exhausted = true;
            front.parked_by = record.fixed().parked_by;
            *record = record.with_front(&front);
        });
        self.noted(now, node, (request.heard, request.lease), note)
    }

    fn note(&mut self, node: &NodeId, id: &JobId, token: Token, write: impl FnOnce(&mut Run, &mut Record)) -> Note {
        let Some(Slot { record, place: Place::Running(run), .. }) = self.jobs.run_mut(node, id, token) else {
            return Note::Stale;
        };
        if run.mark.as_ref().is_some_and(|mark| mark.is_unfenced_end()) {
            return Note::Ended;
        }
        write(run, record);
        Note::Done
    }

    fn noted(&mut self, now: Now, node: &NodeId, (heard, lease): (Turn, Duration), note: Note) -> Noted {
        self.renew(now, node, heard, lease);
        Noted { standing: self.standing(node), note }
    }
}
