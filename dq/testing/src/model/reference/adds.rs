//! The step `add` (rules 2, 4, 12, 13, 17 and 24).

use std::collections::BTreeSet;

use super::calls::{Call, KeptAnswer};
use super::{AddedJob, Job, Place, Replacement, Topic};
use dq::job::state::Event;
use dq::job::{Deliver, JobId, Metadata, ProducerId, State};
use dq::store::{AddOutcome, BatchAnswer, Due, NewJob, Numbered, OnDuplicate};

impl Topic {
    /// `None`: the topic drains.
    pub(in super::super) fn add(
        &mut self,
        producer: &ProducerId,
        batch: &Numbered<NewJob>,
    ) -> Option<BatchAnswer<AddOutcome>> {
        match self.call(producer, batch.number) {
            Call::Late => return Some(BatchAnswer::Late),
            Call::Repeat(kept) => return Some(kept.added()),
            Call::New if self.state.drain.is_some() => return None,
            Call::New => {}
        }
        let mut named = BTreeSet::new();
        let mut outcomes = Vec::new();
        for job in &batch.items {
            outcomes.push(if named.insert(&job.id) { self.add_one(job) } else { AddOutcome::Repeated });
        }
        self.keep(producer, batch.number, KeptAnswer::Added(outcomes.clone()));
        Some(BatchAnswer::Done(outcomes))
    }

    fn add_one(&mut self, job: &NewJob) -> AddOutcome {
        let at_once = self.after(std::time::Duration::ZERO);
        let mut metadata = job.record.metadata().expect("the model adds readable records");
        let due = match (job.due, &self.state.delay) {
            (Due::Usual(_), Some(usual)) => {
                metadata.delay = usual.delay;
                self.after(usual.delay)
            }
            (Due::After(delay) | Due::Usual(delay), _) => self.after(delay),
            (Due::At(at), _) => at.max(at_once),
        };
        let expires_at = job.expires_after.map(|after| due.after(after)).or(metadata.expires_at);
        let first_added = matches!(job.on_duplicate, OnDuplicate::Extend { .. }).then_some(at_once);
        let new = Metadata { expires_at, parked_by: None, version: 0, first_added, ..metadata };
        let record = job.record.with_metadata(&new);
        let new = AddedJob { record, due, deliver: job.deliver };
        match self.state(&job.id) {
            None | Some(State::Done) => {
                self.put(&job.id, new);
                AddOutcome::Added
            }
            Some(State::Running) => {
                if let OnDuplicate::Extend { at_most } = job.on_duplicate
                    && let Some(extended) = self.extend_replacement(&job.id, &new, at_most)
                {
                    return extended;
                }
                self.add_over_run(&job.id, new, job.on_duplicate)
            }
            Some(state) if job.on_duplicate == OnDuplicate::Replace => {
                self.put(&job.id, new);
                AddOutcome::Replaced(state)
            }
            Some(state) => match job.on_duplicate {
                OnDuplicate::Extend { at_most } if state == State::Delayed => self.extend(&job.id, &new, at_most),
                _ => AddOutcome::Exists(state),
            },
        }
    }

    fn add_over_run(&mut self, id: &JobId, new: AddedJob, on_duplicate: OnDuplicate) -> AddOutcome {
        let broadcast_waits = self.broadcasts.contains_key(id);
        let run = self.run_mut(id).expect("the job is RUNNING");
        if matches!(on_duplicate, OnDuplicate::Replace | OnDuplicate::Extend { .. }) {
            run.replacement = Some(Replacement { job: new, only_if_ended: false });
            return AddOutcome::ReplacementWaits;
        }
        match run.end {
            // Under an unfenced end the id counts as absent, but a waiting broadcast still makes it known.
            Some(end) if end.fence.is_none() && broadcast_waits => AddOutcome::Exists(State::Delayed),
            Some(end) if end.fence.is_none() && run.replacement.is_none() => {
                run.replacement = Some(Replacement { job: new, only_if_ended: false });
                AddOutcome::ReplacementWaits
            }
            Some(_) if on_duplicate == OnDuplicate::Keep && run.replacement.is_none() => {
                run.replacement = Some(Replacement { job: new, only_if_ended: true });
                AddOutcome::ReplacementIfEnds
            }
            _ => AddOutcome::Exists(State::Running),
        }
    }

    /// Puts a new job in its places: it replaces the job and the broadcast that had its id.
    pub(super) fn put(&mut self, id: &JobId, new: AddedJob) {
        let old = self.jobs.remove(id);
        self.broadcasts.remove(id);
        if let Some(old) = old {
            assert!(old.place.state().apply(Event::Replaced).is_ok(), "the reference makes only legal moves");
        }
        if new.deliver != Deliver::Queue {
            self.broadcasts.insert(id.clone(), (new.due, new.record.clone()));
        }
        if new.deliver != Deliver::Broadcast {
            assert_eq!(State::ADDED, State::Delayed);
            self.jobs.insert(id.clone(), Job { record: new.record, place: Place::Delayed(new.due), crashes: 0 });
        }
    }
}
