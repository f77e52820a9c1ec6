//! Every way out of RUNNING (rules 12, 13, 17, 19 and 25): one method, so that no step can forget the pending command.
//!
//! The order is: a replacement takes the job's place; then an end from outside overrides what the run says; then the run's
//! own outcome counts. In each case the row, its isolation and the pending command are gone afterwards, and so is the crash
//! count, unless the job was only given back.

use super::now::Now;
use super::pending::{Ended, PendingCommand};
use super::places::{Run, SlotMut, TimedPlace};
use super::topic::Topic;
use crate::job::{Cause, Charge, Fence, Isolation, JobId, Metadata, Record, Token};
use crate::store::step::{Change, RejoinDue};
use crate::time::Timestamp;

/// Why a run ends.
#[derive(Debug)]
pub(super) enum Exit {
    /// Its node settled it.
    Settled(Change, Option<Metadata>),
    /// Another node reclaimed it.
    Reclaimed {
        /// The crash cap; `None`: the node released the job, so nothing is charged.
        max_crashes: Option<u32>,
    },
}

/// What the store kept of a run that has ended.
struct EndedRun {
    token: Token,
    isolation: Option<Isolation>,
    crashes: u32,
    /// The parking fence of the job, if `sweep` claimed it.
    parked_by: Option<Fence>,
}

impl Topic {
    /// Ends the run of `id`, which must be RUNNING.
    pub(super) fn leave_running(&mut self, now: Now, id: &JobId, exit: Exit) {
        let mut slot = self.jobs.get_mut(id).expect("only a known job is running");
        let &Run { token, isolation, .. } = slot.run().expect("only a running job leaves RUNNING");
        let PendingCommand { end, replacement } = slot.take_pending().unwrap_or_default();
        let parked_by = slot.record.fixed().parked_by;
        let run = EndedRun { token, isolation, crashes: slot.take_crashes(), parked_by };
        let ended = end.filter(|end| end.applies(token.fence, parked_by)).map(|end| end.how);
        if let Some(replacement) = replacement.filter(|new| ended.is_some() || !new.conditional) {
            if let (None, Exit::Settled(Change::Tick(tick), _)) = (ended, &exit) {
                self.add_jobs_of(now, tick);
            }
            return self.put(now, id, replacement.job);
        }
        match (ended, exit) {
            (Some(how), _) => drop(self.finish(now, id, how)),
            (None, Exit::Settled(change, metadata)) => self.decide(now, id, &run, &change, metadata),
            (None, Exit::Reclaimed { max_crashes: None }) => self.give_back(now, id, &run, run.crashes),
            (None, Exit::Reclaimed { max_crashes: Some(cap) }) => self.charge(now, id, &run, cap),
        }
    }

    /// Ends a job that was acked, deleted or cancelled: it is gone, or DONE for its retention. Returns the removed record.
    pub(super) fn finish(&mut self, now: Now, id: &JobId, how: Ended) -> Option<Record> {
        let retain = self.jobs.get(id)?.record.fixed().retain;
        if how != Ended::Acked || retain.is_zero() {
            return self.jobs.remove(id);
        }
        self.jobs.get_mut(id)?.set_crashes(0);
        self.jobs.move_to(id, TimedPlace::Done, now.floor().after(retain));
        None
    }

    fn decide(&mut self, now: Now, id: &JobId, run: &EndedRun, change: &Change, metadata: Option<Metadata>) {
        match change {
            Change::Ack => {
                let removed = self.finish(now, id, Ended::Acked);
                if removed.is_none() {
                    self.write_metadata(id, metadata, run.parked_by);
                }
            }
            Change::Drop => drop(self.jobs.remove(id)),
            Change::Rejoin(again) => {
                self.write_metadata(id, metadata, None);
                let due = self.due_again(now, id, *again);
                self.delay(now, id, due);
            }
            Change::Retry(after) => {
                self.write_metadata(id, metadata, None);
                self.delay(now, id, now.after(*after));
            }
            Change::Rollback => {
                self.write_metadata(id, metadata, run.parked_by);
                self.give_back(now, id, run, run.crashes);
            }
            Change::Park => {
                self.write_metadata(id, metadata, run.parked_by.or(Some(run.token.fence)));
                self.jobs.move_to(id, TimedPlace::Unacked, now.floor());
            }
            Change::Dead => {
                self.write_metadata(id, metadata, None);
                self.give_up(now, id);
            }
            Change::Tick(tick) => self.tick(now, id, run.token.due, tick),
        }
    }

    fn due_again(&self, now: Now, id: &JobId, again: RejoinDue) -> Timestamp {
        match again {
            RejoinDue::After(delay) => now.after(delay),
            RejoinDue::At(at) if at > now.floor() => at,
            RejoinDue::AsAdded | RejoinDue::At(_) => {
                now.after(self.jobs.get(id).map(|slot| slot.record.fixed().delay).unwrap_or_default())
            }
        }
    }

    /// Puts the job back in the place that it was claimed from, at its old time.
    fn give_back(&mut self, now: Now, id: &JobId, run: &EndedRun, crashes: u32) {
        if let Some(mut slot) = self.jobs.get_mut(id) {
            slot.set_crashes(crashes);
        }
        match run.parked_by {
            Some(_) => self.jobs.move_to(id, TimedPlace::Unacked, run.token.due),
            None => self.delay(now, id, run.token.due),
        }
    }

    fn give_up(&mut self, now: Now, id: &JobId) {
        self.write_metadata(id, None, None);
        self.jobs.move_to(id, TimedPlace::Dead, now.floor());
    }

    /// Charges the crash of its node to the job, and puts the job where it belongs then (rule 19).
    fn charge(&mut self, now: Now, id: &JobId, run: &EndedRun, cap: u32) {
        let mut slot = self.jobs.get_mut(id).expect("the job is known");
        match Charge::of(run.crashes, run.isolation, slot.record.fixed().exhausted, cap) {
            Charge::Counted(crashes) => self.give_back(now, id, run, crashes),
            Charge::Convicted(crashes) => {
                slot.exhaust();
                self.give_back(now, id, run, crashes);
            }
            Charge::Dead => self.give_up(now, id),
        }
    }

    /// Writes new metadata, if there is any, and the parking fence, which only the store sets.
    pub(super) fn write_metadata(&mut self, id: &JobId, metadata: Option<Metadata>, parked_by: Option<Fence>) {
        if let Some(mut slot) = self.jobs.get_mut(id) {
            slot.write_metadata(metadata, parked_by);
        }
    }
}

impl SlotMut<'_> {
    /// As [`Topic::write_metadata`]; leaves the record's bytes alone if nothing changes.
    pub(super) fn write_metadata(&mut self, metadata: Option<Metadata>, parked_by: Option<Fence>) {
        if metadata.is_none() && self.record.fixed().parked_by == parked_by {
            return;
        }
        let mut metadata = metadata.unwrap_or_else(|| self.record.metadata().unwrap_or_default());
        metadata.parked_by = parked_by;
        self.set_metadata(&metadata);
    }

    /// Notes that crashes have exhausted the job.
    fn exhaust(&mut self) {
        let mut metadata = self.record.metadata().unwrap_or_default();
        (metadata.exhausted, metadata.cause) = (true, Some(Cause::Crashes));
        self.set_metadata(&metadata);
    }
}
