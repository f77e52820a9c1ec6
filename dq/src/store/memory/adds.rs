//! The step `add` (rules 2, 13 and 24), also one that extends a job that waits (`add_or_extend`, rule 28).

use std::collections::HashSet;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::change::{Edit, LATEST_EXPIRY, Present};
use super::now::Now;
use super::places::{Place, Slot, bytes_of_row};
use super::taken::bytes_of_taken;
use super::topic::Topic;
use crate::job::{Delivery, GroupName, JobId, Metadata, ProducerId, Record, State, Weight};
use crate::store::{
    AddOutcome, AddedJob, Due, LAST_VERSION, NewJob, OnDuplicate, PendingCommand, Replacement, StoreError, TooHeavy,
    TopicFull, Transition,
};
use crate::time::Timestamp;

impl Topic {
    /// New jobs → DELAYED, the waiting broadcasts, or the pending command of a running job. O(n log n).
    pub(crate) fn add(
        &mut self,
        now: Now,
        producer: &ProducerId,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<AddOutcome>, StoreError> {
        self.takes_jobs()?;
        let of_job = |job: &NewJob| bytes_of_row(&job.id, job.record.as_bytes().len());
        let of_id = |job: &NewJob| job.unique_for.map_or(0, |_| bytes_of_taken(&job.id));
        self.memory.take("add", jobs.iter().map(|job| of_job(job) + of_id(job)).sum())?;
        let (mut chosen, is_alone) = (HashSet::with_hasher(FixedState::default()), jobs.len() == 1);
        let mut outcomes = Vec::with_capacity(jobs.len());
        let extends = |job: &&NewJob| !job.generated && matches!(job.on_duplicate, OnDuplicate::Extend { .. });
        let left_out = self.over_the_bytes(jobs.iter().filter(extends).map(|job| (&job.id, self.moved_by(job))));
        for job in jobs {
            let is_new = job.generated || is_alone || chosen.insert(job.id.clone());
            outcomes.push(match is_new {
                true if left_out.contains(&job.id) => AddOutcome::Later,
                true => self.add_and_take(now, producer, job),
                false => AddOutcome::Repeated,
            });
        }
        Ok(outcomes)
    }

    /// Adds a job, unless its id is taken by one that is gone; the id then stays taken for as long as the job says.
    fn add_and_take(&mut self, now: Now, producer: &ProducerId, job: NewJob) -> AddOutcome {
        let (id, unique_for) = (job.id.clone(), job.unique_for);
        if job.generated {
            return self.add_one(now, producer, job);
        }
        if let (Some(taken), OnDuplicate::Reject | OnDuplicate::Keep) = (self.taken.now(now, &id), job.on_duplicate) {
            return match self.state(&id) {
                None | Some(State::Done) if taken.was_deleted => AddOutcome::Deleted,
                state => AddOutcome::Exists(state.unwrap_or(State::Done)),
            };
        }
        let outcome = self.add_one(now, producer, job);
        if outcome.is_taken() {
            self.taken.added(now, &id, unique_for);
        }
        outcome
    }

    fn add_one(&mut self, now: Now, producer: &ProducerId, job: NewJob) -> AddOutcome {
        if let Some(refusal) = self.refusal_of(&job) {
            return refusal;
        }
        let usual = self.settings.delay.as_ref().map(|usual| usual.delay);
        let (due, record) = match (job.due, usual) {
            (Due::After(delay) | Due::Usual(delay), None) | (Due::After(delay), Some(_)) => {
                (now.after(delay), job.record)
            }
            (Due::Usual(_), Some(delay)) => (now.after(delay), delayed_by(job.record, delay)),
            (Due::At(at), _) => (at.max(now.floor()), job.record),
        };
        let first_added = matches!(job.on_duplicate, OnDuplicate::Extend { .. }).then_some(now.floor());
        let record = match stamped(record, due, job.expires_after, first_added) {
            Ok(record) => self.in_order(now, record),
            Err(reason) => return AddOutcome::Refused(reason),
        };
        let is_plain = job.deliver == Delivery::Queue && !self.broadcasts.contains(&job.id);
        let record = match record {
            record if is_plain => match self.put_if_unknown(now, &job.id, record, due) {
                None => return AddOutcome::Added,
                Some(record) => record,
            },
            record => record,
        };
        let new = AddedJob { record, due, deliver: job.deliver };
        match (self.state(&job.id), job.on_duplicate) {
            (Some(State::Running), OnDuplicate::Extend { at_most }) if self.replacement(&job.id).is_some() => {
                self.extend(now, producer, &job.id, &new, at_most)
            }
            (Some(State::Running), on_duplicate) => self.add_over_run(&job.id, new, on_duplicate),
            (None | Some(State::Done), _) => {
                self.put(now, &job.id, new);
                AddOutcome::Added
            }
            (Some(state), OnDuplicate::Replace) => {
                self.put(now, &job.id, new);
                AddOutcome::Replaced(state)
            }
            (Some(State::Delayed), OnDuplicate::Extend { at_most }) => {
                self.extend(now, producer, &job.id, &new, at_most)
            }
            (Some(state), OnDuplicate::Reject | OnDuplicate::Keep | OnDuplicate::Extend { .. }) => {
                AddOutcome::Exists(state)
            }
        }
    }

    /// The answer to a job that is too heavy, or to one more than may wait, in the topic or in its group.
    fn refusal_of(&self, job: &NewJob) -> Option<AddOutcome> {
        if self.passes_limit {
            return None;
        }
        if let Some(heavy) = self.too_heavy(&job.id, &job.record, job.deliver) {
            let replaces = job.on_duplicate == OnDuplicate::Replace && self.state(&job.id) != Some(State::Running);
            if replaces || self.takes_room(job) {
                return Some(AddOutcome::TooHeavy(heavy));
            }
        }
        self.is_full_for(job).map(AddOutcome::TopicFull).or_else(|| {
            let limit = self.settings.group_waiting().or(job.max_waiting.and_then(|most| most.group))?;
            let (_, name) = job.record.group()?;
            let full = TopicFull::of(self.jobs.waiting_in(name), limit, 1)?;
            let group = GroupName::new(name).ok()?;
            self.takes_room(job).then_some(AddOutcome::GroupFull { group, full })
        })
    }

    /// Whether no period of a rate has room for this job, if it comes into the queue. A schedule and a broadcast spend none.
    pub(super) fn too_heavy(&self, id: &JobId, record: &Record, deliver: Delivery) -> Option<TooHeavy> {
        if record.weight() == Weight::ONE || deliver == Delivery::Broadcast || id.schedule_name().is_some() {
            return None;
        }
        let (rate, group_rate) = self.told_rates();
        TooHeavy::of(record, rate, group_rate)
    }

    /// Whether the topic is full for this job. A job of a follow-up comes with all others of its run, or waits with them.
    pub(super) fn is_full_for(&self, job: &NewJob) -> Option<TopicFull> {
        let full = self.no_room(job.max_waiting.and_then(|most| most.topic), 1)?;
        self.takes_room(job).then_some(full)
    }

    /// Whether one job more would wait. What is known already, a schedule or a broadcast is none.
    fn takes_room(&self, job: &NewJob) -> bool {
        let passes = job.deliver == Delivery::Broadcast || job.id.schedule_name().is_some();
        !passes && matches!(self.state(&job.id), None | Some(State::Done))
    }

    /// The record with its order among those that were added to its group.
    fn in_order(&mut self, now: Now, record: Record) -> Record {
        if record.group().is_none() {
            return record;
        }
        self.group_order = now.micros().max(self.group_order.saturating_add(1));
        let metadata = Metadata { group_order: self.group_order, ..record.metadata().unwrap_or_default() };
        record.with_metadata(&metadata)
    }

    /// Adds a job, as nearly every add does, with one look for its id. If the id is known, returns the record and changes nothing.
    fn put_if_unknown(&mut self, now: Now, id: &JobId, record: Record, due: Timestamp) -> Option<Record> {
        let is_earlier = self.is_before_head(due);
        let known = self.jobs.delay_if_unknown(id.clone(), record, due);
        if known.is_none() {
            self.record.note(id, || Transition::Added { due });
        }
        if known.is_none() && is_earlier && !self.jobs.have_groups() {
            self.signal_head(now, due);
        }
        known
    }

    /// Changes only the pending command of a running job: the new job takes its place when the run ends.
    fn add_over_run(&mut self, id: &JobId, new: AddedJob, on_duplicate: OnDuplicate) -> AddOutcome {
        let broadcast_waits = self.broadcasts.contains(id);
        let pending = self.jobs.get(id).and_then(Slot::pending);
        let ends_for_sure = pending.is_some_and(PendingCommand::is_unfenced_end);
        let may_wait = pending.is_some_and(|pending| pending.end.is_some() && pending.replacement.is_none());
        let (conditional, outcome) = match on_duplicate {
            OnDuplicate::Replace | OnDuplicate::Extend { .. } => (false, AddOutcome::ReplacementWaits),
            _ if ends_for_sure && broadcast_waits => return AddOutcome::Exists(State::Delayed),
            _ if ends_for_sure && may_wait => (false, AddOutcome::ReplacementWaits),
            OnDuplicate::Keep if may_wait => (true, AddOutcome::ReplacementIfEnds),
            OnDuplicate::Keep | OnDuplicate::Reject => return AddOutcome::Exists(State::Running),
        };
        if let Some(heavy) = self.too_heavy(id, &new.record, new.deliver).filter(|_| !self.passes_limit) {
            return AddOutcome::TooHeavy(heavy);
        }
        let mut slot = self.jobs.get_mut(id).expect("its state is known");
        let replace = |pending: &mut PendingCommand| pending.replacement = Some(Replacement { job: new, conditional });
        slot.change_pending(replace).expect("the state of the job is RUNNING");
        self.record.note(id, || Transition::ReplacementWaits);
        outcome
    }

    /// Puts a new job in its places: it replaces the job and the broadcast that had its id.
    pub(super) fn put(&mut self, now: Now, id: &JobId, new: AddedJob) {
        self.jobs.remove(id);
        self.broadcasts.remove(id);
        let AddedJob { record, due, deliver } = new;
        self.record.note(id, || Transition::Added { due });
        if deliver != Delivery::Queue {
            self.delay_broadcast(now, id.clone(), record.clone(), due);
        }
        if deliver != Delivery::Broadcast {
            self.signal_earlier_head(now, due);
            self.jobs.insert(id.clone(), Slot::new(record, 0, Place::Timed(State::Delayed, due)));
        }
    }

    fn replacement(&self, id: &JobId) -> Option<&Replacement> {
        self.jobs.get(id)?.replacement()
    }

    /// Gives a job that waits, or the replacement of a running job, the new payload and the new due time. The replacement then waits in
    /// any case.
    fn extend(
        &mut self,
        now: Now,
        producer: &ProducerId,
        id: &JobId,
        new: &AddedJob,
        at_most: Option<Duration>,
    ) -> AddOutcome {
        let waiting = self.replacement(id).map(|replacement| Present::of(&replacement.job.record));
        let is_replacement = waiting.is_some();
        let Present { version, first_added, .. } = waiting.unwrap_or_else(|| self.present(id));
        let Some(version) = version.checked_add(1) else { return AddOutcome::Refused(LAST_VERSION.to_owned()) };
        let first = first_added.unwrap_or_else(|| now.floor());
        // At most so long after the first add, and never before now.
        let bounded = |at_most| new.due.min(first.after(at_most)).max(now.floor());
        let due = at_most.map_or(new.due, bounded);
        let edit = Edit { version, first_added: Some(first), payload: Some(&new.record), options: None };
        if is_replacement {
            let mut slot = self.jobs.get_mut(id).expect("its state is known");
            let extend = |pending: &mut PendingCommand| {
                let old = pending.replacement.as_mut().expect("a replacement waits");
                old.job.record = edit.of(&old.job.record, Some((old.job.due, due)));
                (old.job.due, old.conditional) = (due, false);
            };
            slot.change_pending(extend).expect("a replacement waits");
        } else {
            let heads = self.heads();
            self.edit(id, &edit, |_| due);
            self.signal_new_heads(now, heads);
        }
        self.record.note(id, || Transition::Changed { due: Some(due), by: producer.to_string() });
        AddOutcome::Extended { due, version }
    }

    /// How many bytes an add that extends a job moves: those of the broadcast or of the replacement that waits.
    fn moved_by(&self, job: &NewJob) -> usize {
        match self.state(&job.id) {
            Some(State::Delayed) => self.broadcast_size(&job.id),
            Some(State::Running) => self.replacement_size(&job.id),
            _ => 0,
        }
    }
}

/// The record of a job that was added with this delay. One that does not decode stays as it is.
fn delayed_by(record: Record, delay: Duration) -> Record {
    match record.metadata() {
        Ok(metadata) => record.with_metadata(&Metadata { delay, ..metadata }),
        Err(_) => record,
    }
}

/// The record as the store keeps it: with its expiry as a time, and without what only a store writes.
fn stamped(
    record: Record,
    due: Timestamp,
    expires_after: Option<Duration>,
    first_added: Option<Timestamp>,
) -> Result<Record, String> {
    let fixed = record.fixed();
    let is_new = (fixed.parked_by, fixed.version, fixed.first_added) == (None, 0, None);
    if expires_after.is_none() && first_added.is_none() && is_new {
        return Ok(record);
    }
    let mut metadata = record.metadata().map_err(|bad| bad.to_string())?;
    (metadata.parked_by, metadata.version, metadata.first_added) = (None, 0, first_added);
    if let Some(after) = expires_after {
        metadata.expires_at = Some(due.after(after).min(LATEST_EXPIRY));
    }
    Ok(record.with_metadata(&metadata))
}
