//! Every way out of RUNNING (rules 13, 19, 25 and 30): one method, so that no step can forget the pending command.
//!
//! The order is: a replacement takes the job's place; then an end from outside overrides what the run says; then the run's
//! own outcome counts. In each case the row, its isolation and the pending command are gone afterwards, and so is the crash
//! count, unless the job was only given back.

use super::now::Now;
use super::places::{Place, Slot, SlotMut};
use super::topic::Topic;
use crate::job::{Cause, Charge, Fence, Isolation, JobId, Metadata, NodeId, Record, State, Token};
use crate::store::step::{Change, RejoinDue, Tick};
use crate::store::{AddedJob, Ended, PendingCommand, Transition};
use crate::time::Timestamp;
use dq_grammar::BlockedBy;

/// Why a run ends.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one call")]
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
    node: NodeId,
    token: Token,
    isolation: Option<Isolation>,
    crashes: u32,
    /// The parking fence of the job, if `sweep` claimed it.
    parked_by: Option<Fence>,
}

impl EndedRun {
    fn node(&self) -> String {
        self.node.to_string()
    }

    fn reclaimed(&self) -> Transition {
        Transition::Reclaimed { node: self.node() }
    }
}

impl Topic {
    /// Ends the run of `id`, which must be RUNNING.
    pub(super) fn leave_running(&mut self, now: Now, id: &JobId, exit: Exit) {
        let mut slot = self.jobs.get_mut(id).expect("only a known job is running");
        let run = slot.run().expect("only a running job leaves RUNNING");
        let (node, token, isolation) = (run.node.clone(), run.token, run.isolation);
        let PendingCommand { end, replacement } = slot.take_pending().unwrap_or_default();
        let parked_by = slot.record.fixed().parked_by;
        let run = EndedRun { node, token, isolation, crashes: slot.take_crashes(), parked_by };
        if let Exit::Settled(Change::Rejoin(RejoinDue::BackOff(delay)), _) = &exit {
            self.back_off(now, id, &run.node, now.after(*delay));
        }
        let ended = end.filter(|end| end.applies(Some(token.fence), parked_by)).map(|end| end.how);
        if let Exit::Settled(change, _) = &exit {
            self.write_follow_ups(now, change, ended);
        }
        if let Some(replacement) = replacement.filter(|new| ended.is_some() || !new.conditional) {
            if let (None, Exit::Settled(Change::Tick(tick), _)) = (ended, &exit) {
                self.add_jobs_of(now, tick);
            }
            return self.put(now, id, replacement.job);
        }
        match (ended, exit) {
            (Some(how), _) => {
                drop(self.finish(now, id, how));
                self.record.note(id, || match how {
                    Ended::Acked => Transition::Done { by: String::new() },
                    Ended::Deleted | Ended::Cancelled => Transition::Deleted { by: String::new() },
                });
            }
            (None, Exit::Settled(change, metadata)) => self.decide(now, id, &run, change.alone(), metadata),
            (None, Exit::Reclaimed { max_crashes: None }) => {
                self.record.note(id, || run.reclaimed());
                self.give_back(now, id, &run, run.crashes);
            }
            (None, Exit::Reclaimed { max_crashes: Some(cap) }) => {
                self.record.note(id, || run.reclaimed());
                self.charge(now, id, &run, cap);
            }
        }
    }

    /// Writes the follow-ups of an outcome that counts: an end from outside overrides it, unless both are acks.
    fn write_follow_ups(&mut self, now: Now, change: &Change, ended: Option<Ended>) {
        let counts = match ended {
            None => true,
            Some(how) => how == Ended::Acked && *change.alone() == Change::Ack,
        };
        if let Some(follow_ups) = change.follow_ups().filter(|_| counts) {
            self.outbox.write(now, follow_ups);
        }
    }

    /// Ends a job that was acked, deleted or cancelled: it is gone, or DONE for its retention. Returns the removed record.
    pub(super) fn finish(&mut self, now: Now, id: &JobId, how: Ended) -> Option<Record> {
        let retain = self.jobs.get(id)?.record.retain();
        if how != Ended::Acked || retain.is_zero() {
            return self.jobs.remove(id);
        }
        self.jobs.get_mut(id)?.set_crashes(0);
        self.jobs.move_to(id, State::Done, now.floor().after(retain));
        None
    }

    fn decide(&mut self, now: Now, id: &JobId, run: &EndedRun, change: &Change, metadata: Option<Metadata>) {
        if *change != Change::Rollback && !self.by_code.keeps_seat(change) {
            self.jobs.free_seat(id);
        }
        match change {
            Change::Ack => {
                self.write_metadata(id, metadata, run.parked_by);
                drop(self.finish(now, id, Ended::Acked));
                self.record.note(id, || Transition::Done { by: run.node() });
            }
            Change::Drop => {
                self.jobs.remove(id);
                self.record.note(id, || Transition::Dropped);
            }
            Change::Rejoin(again) => {
                self.write_metadata(id, metadata, None);
                let due = self.due_again(now, id, *again);
                self.delay(now, id, due);
                self.record.note(id, || Transition::Rejoined { due, node: run.node() });
            }
            Change::Retry(after) => {
                self.write_metadata(id, metadata, None);
                let (due, cause) = (now.after(*after), self.cause_of(id));
                self.delay(now, id, due);
                self.record.note(id, || Transition::Retried { cause, due, node: run.node() });
            }
            Change::Rollback => {
                self.write_metadata(id, metadata, run.parked_by);
                self.give_back(now, id, run, run.crashes);
                self.record.note(id, || Transition::GivenBack { node: run.node() });
            }
            Change::Park => {
                self.write_metadata(id, metadata, run.parked_by.or(Some(run.token.fence)));
                self.jobs.move_to(id, State::Unacked, now.floor());
                self.record.note(id, || Transition::Parked { node: run.node() });
            }
            Change::Dead => {
                self.write_metadata(id, metadata, None);
                self.give_up(now, id, run);
            }
            Change::Tick(tick) => self.tick(now, id, run.token.due, &run.node, tick),
            Change::Then(..) => {} // `alone` has taken that apart
        }
    }

    /// RUNNING → DELAYED at the next tick, or gone; the jobs of the tick → DELAYED, or the waiting broadcasts.
    pub(super) fn tick(&mut self, now: Now, id: &JobId, due: Timestamp, node: &NodeId, tick: &Tick) {
        let schedule = self.add_jobs_of(now, tick);
        self.jobs.remove(id);
        if let Some(next) = tick.next {
            let due = next.max(Timestamp::from_millis(due.as_millis().saturating_add(1)));
            self.signal_earlier_head(now, due);
            self.jobs.insert(id.clone(), Slot::new(schedule.clone(), 0, Place::Timed(State::Delayed, due)));
            self.record.note(id, || Transition::Rejoined { due, node: node.to_string() });
        } else {
            self.record.note(id, || Transition::Done { by: node.to_string() });
        }
    }

    /// Adds the jobs of a tick, unless the last one has not ended. Returns the record of the schedule from now on.
    pub(super) fn add_jobs_of<'a>(&mut self, now: Now, tick: &'a Tick) -> &'a Record {
        if let Some((_, skipped)) = tick.unless.as_ref().filter(|(last, _)| self.has_not_ended(last)) {
            return skipped;
        }
        for job in &tick.jobs {
            if matches!(self.state(&job.id), None | Some(State::Done)) {
                let (record, due, deliver) = (job.record.clone(), job.due, job.deliver);
                self.put(now, &job.id, AddedJob { record, due, deliver });
            }
        }
        &tick.schedule
    }

    /// Whether a part of the job waits, runs or is UNACKED: its broadcast may wait although the other part is DEAD.
    fn has_not_ended(&self, id: &JobId) -> bool {
        self.broadcasts.contains(id)
            || matches!(self.jobs.state(id), Some(State::Delayed | State::Running | State::Unacked))
    }

    fn due_again(&self, now: Now, id: &JobId, again: RejoinDue) -> Timestamp {
        match again {
            RejoinDue::After(delay) | RejoinDue::BackOff(delay) => now.after(delay),
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
            Some(_) => self.jobs.move_to(id, State::Unacked, run.token.due),
            None => self.delay(now, id, run.token.due),
        }
    }

    fn give_up(&mut self, now: Now, id: &JobId, run: &EndedRun) {
        self.write_metadata(id, None, None);
        let cause = self.cause_of(id);
        self.record.died(id, cause, &run.node);
        if !self.by_code.group_on_blocked.waits_for(BlockedBy::Dead) {
            self.jobs.free_seat(id);
        }
        self.jobs.move_to(id, State::Dead, now.floor());
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
            Charge::Dead => self.give_up(now, id, run),
        }
    }

    /// Why the last run failed, if somebody wants to know.
    fn cause_of(&self, id: &JobId) -> Option<Cause> {
        if !self.record.wants_moves() {
            return None;
        }
        self.jobs.get(id)?.record.metadata().ok()?.cause
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
