//! Every way out of RUNNING, in one place, so that none forgets the mark (PROTOCOL.md rules 12, 13, 17, 19 and 25).
//!
//! In this order: a replacement takes the place; an end from outside outweighs what the run says; then the run decides.
//! Whatever happens, the row, the mark and *begun* are gone afterwards, and the crash count too, unless the job was only
//! given back.

use std::mem;

use super::now::Now;
use super::pending::{Ended, PendingCommand};
use super::places::{Place, Run, Shelf, Slot};
use super::topic::Topic;
use crate::job::{Cause, Fence, JobId, Metadata, Record, Token};
use crate::store::step::{Again, Change};
use crate::time::Timestamp;

/// How a run ends.
#[derive(Debug)]
pub(super) enum Exit {
    /// By its node.
    Settled(Change, Option<Metadata>),
    /// Its node was taken for dead, or stopped and left it.
    Reclaimed {
        /// How many crashes exhaust the job; `None`: its node stopped, no crash is charged.
        charged: Option<u32>,
    },
}

/// What a run leaves behind.
struct Ending {
    token: Token,
    isolated: bool,
    crashes: u32,
    /// The run that had parked the job, when this one came from `sweep`.
    parked_by: Option<Fence>,
}

impl Topic {
    /// Ends the run of `id`, which is RUNNING.
    pub(super) fn leave(&mut self, now: Now, id: &JobId, exit: Exit) {
        let slot = self.jobs.get_mut(id).expect("only a known job is running");
        let Place::Running(run) = &mut slot.place else { unreachable!("only a running job leaves RUNNING") };
        let Run { token, isolated, .. } = **run;
        let pending = run.pending.take();
        let parked_by = slot.record.fixed().parked_by;
        let ending = Ending { token, isolated, crashes: mem::take(&mut slot.crashes), parked_by };
        let PendingCommand { end, replacement } = pending.map(|pending| *pending).unwrap_or_default();
        let ended = end.filter(|end| end.applies(token.fence, parked_by)).map(|end| end.how);
        if let Some(replacement) = replacement.filter(|new| ended.is_some() || !new.conditional) {
            return self.put(now, id, replacement.fresh);
        }
        match (ended, exit) {
            (Some(how), _) => drop(self.finish(now, id, how)),
            (None, Exit::Settled(change, metadata)) => self.decide(now, id, &ending, &change, metadata),
            (None, Exit::Reclaimed { charged: None }) => self.give_back(now, id, &ending, ending.crashes),
            (None, Exit::Reclaimed { charged: Some(cap) }) => match self.charge(id, &ending, cap) {
                Some(crashes) => self.give_back(now, id, &ending, crashes),
                None => self.give_up(now, id),
            },
        }
    }

    /// The end of a job that was acked, deleted or cancelled: gone, or DONE for its retention. Gives what was removed.
    pub(super) fn finish(&mut self, now: Now, id: &JobId, how: Ended) -> Option<Record> {
        let retain = self.jobs.get(id)?.record.fixed().retain;
        if how != Ended::Acked || retain.is_zero() {
            return self.jobs.remove(id);
        }
        self.jobs.get_mut(id)?.crashes = 0;
        self.jobs.shelve(id, Shelf::Done, now.floor().after(retain));
        None
    }

    fn decide(&mut self, now: Now, id: &JobId, ending: &Ending, change: &Change, metadata: Option<Metadata>) {
        match *change {
            Change::Ack => {
                let removed = self.finish(now, id, Ended::Acked);
                if removed.is_none() {
                    self.with_metadata(id, metadata, ending.parked_by);
                }
            }
            Change::Drop => drop(self.jobs.remove(id)),
            Change::Rejoin(again) => {
                self.with_metadata(id, metadata, None);
                let due = self.again(now, id, again);
                self.delay(now, id, due);
            }
            Change::Retry(after) => {
                self.with_metadata(id, metadata, None);
                self.delay(now, id, now.after(after));
            }
            Change::Rollback => {
                self.with_metadata(id, metadata, ending.parked_by);
                self.give_back(now, id, ending, ending.crashes);
            }
            Change::Park => {
                self.with_metadata(id, metadata, ending.parked_by.or(Some(ending.token.fence)));
                self.jobs.shelve(id, Shelf::Unacked, now.floor());
            }
            Change::Dead => {
                self.with_metadata(id, metadata, None);
                self.give_up(now, id);
            }
        }
    }

    fn again(&self, now: Now, id: &JobId, again: Again) -> Timestamp {
        match again {
            Again::After(delay) => now.after(delay),
            Again::At(at) if at > now.floor() => at,
            Again::AsAdded | Again::At(_) => {
                now.after(self.jobs.get(id).map(|slot| slot.record.fixed().delay).unwrap_or_default())
            }
        }
    }

    /// Back where it was claimed from, at its old time.
    fn give_back(&mut self, now: Now, id: &JobId, ending: &Ending, crashes: u32) {
        if let Some(slot) = self.jobs.get_mut(id) {
            slot.crashes = crashes;
        }
        match ending.parked_by {
            Some(_) => self.jobs.shelve(id, Shelf::Unacked, ending.token.due),
            None => self.delay(now, id, ending.token.due),
        }
    }

    fn give_up(&mut self, now: Now, id: &JobId) {
        self.with_metadata(id, None, None);
        self.jobs.shelve(id, Shelf::Dead, now.floor());
    }

    /// Charges a crash and gives the new count; `None` when the job is to be given up. Of a job one crash short of its
    /// cap only a begun run is charged; one that is exhausted comes back once, for a `final_retry` that is begun like it.
    fn charge(&mut self, id: &JobId, ending: &Ending, cap: u32) -> Option<u32> {
        let slot = self.jobs.get_mut(id).expect("the job is known");
        let (crashes, cap) = (ending.crashes, cap.max(1));
        if crashes + 1 >= cap && !ending.isolated {
            return Some(crashes);
        }
        if crashes >= cap {
            if !slot.record.fixed().exhausted {
                slot.exhaust();
            }
            return None;
        }
        if crashes + 1 >= cap {
            slot.exhaust();
        }
        Some(crashes + 1)
    }

    /// Writes the new front, if there is one, and the parking fence, which is the store's.
    pub(super) fn with_metadata(&mut self, id: &JobId, metadata: Option<Metadata>, parked_by: Option<Fence>) {
        if let Some(slot) = self.jobs.get_mut(id) {
            slot.with_metadata(metadata, parked_by);
        }
    }
}

impl Slot {
    /// As [`Topic::with_metadata`]; touches no bytes where nothing changes.
    pub(super) fn with_metadata(&mut self, metadata: Option<Metadata>, parked_by: Option<Fence>) {
        if metadata.is_none() && self.record.fixed().parked_by == parked_by {
            return;
        }
        let mut metadata = metadata.unwrap_or_else(|| self.record.metadata().unwrap_or_default());
        metadata.parked_by = parked_by;
        self.record = self.record.with_metadata(&metadata);
    }

    /// Exhausted by crashes.
    fn exhaust(&mut self) {
        let mut metadata = self.record.metadata().unwrap_or_default();
        (metadata.exhausted, metadata.cause) = (true, Some(Cause::Crashes));
        self.record = self.record.with_metadata(&metadata);
    }
}
