//! The step `import` (rule 27): copies of jobs from an export go into their places.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::now::Now;
use super::places::{Place, Slot, bytes_of_row};
use super::topic::Topic;
use crate::job::{Delivery, GroupName, State};
use crate::store::{Import, ImportOutcome, JobCopy, OnDuplicate, StoreError, TopicFull, Transition};

impl Topic {
    /// Puts copies into their places. Under `Reject` it does all of them or nothing. O(n log n).
    pub(crate) fn import(&mut self, now: Now, import: Import) -> Result<Vec<ImportOutcome>, StoreError> {
        self.takes_jobs()?;
        import.check_ahead(now.micros())?;
        let bytes = import.copies.iter().map(|copy| bytes_of_row(&copy.id, copy.record.as_bytes().len()));
        self.memory.take("import", bytes.sum())?;
        let mut named = HashSet::with_hasher(FixedState::default());
        let outcomes: Vec<_> = import
            .copies
            .iter()
            .map(|copy| match named.insert((copy.is_broadcast, &copy.id)) {
                true => self.import_outcome(copy, import.on_duplicate),
                false => ImportOutcome::Repeated,
            })
            .collect();
        let exists = outcomes.iter().any(|outcome| matches!(outcome, ImportOutcome::Exists(_)));
        let outcomes = match import.on_duplicate {
            OnDuplicate::Reject if exists => outcomes.into_iter().map(not_done).collect(),
            _ => {
                self.none_is_too_heavy(&import.copies, &outcomes)?;
                self.has_room(&import.copies, &outcomes)?;
                for (copy, outcome) in import.copies.into_iter().zip(&outcomes) {
                    if matches!(outcome, ImportOutcome::Added | ImportOutcome::Replaced(_)) {
                        self.put_copy(now, copy.into_sound());
                    }
                }
                self.fence = self.fence.max(import.fence);
                outcomes
            }
        };
        Ok(outcomes)
    }

    /// What the step does with a copy, if it does anything.
    fn import_outcome(&self, copy: &JobCopy, on_duplicate: OnDuplicate) -> ImportOutcome {
        match (self.state_of(copy), on_duplicate) {
            (None, _) => ImportOutcome::Added,
            (Some(State::Running), _) => ImportOutcome::Exists(State::Running),
            (Some(state), OnDuplicate::Replace) => ImportOutcome::Replaced(state),
            (Some(state), OnDuplicate::Reject | OnDuplicate::Keep | OnDuplicate::Extend { .. }) => {
                ImportOutcome::Exists(state)
            }
        }
    }

    /// Refuses a copy that would wait and for which no period of a rate has room.
    fn none_is_too_heavy(&self, copies: &[JobCopy], outcomes: &[ImportOutcome]) -> Result<(), StoreError> {
        for (copy, outcome) in copies.iter().zip(outcomes) {
            let comes = matches!(outcome, ImportOutcome::Added | ImportOutcome::Replaced(_));
            if comes
                && copy.state == State::Delayed
                && !copy.is_broadcast
                && let Some(heavy) = self.too_heavy(&copy.id, &copy.record, Delivery::Queue)
            {
                return Err(StoreError::TooHeavy { id: copy.id.clone(), heavy });
            }
        }
        Ok(())
    }

    /// Refuses copies that would let more jobs wait than may.
    fn has_room(&self, copies: &[JobCopy], outcomes: &[ImportOutcome]) -> Result<(), StoreError> {
        let new = new_waiting(copies, outcomes);
        if let Some(full) = self.no_room(None, new.len()) {
            return Err(StoreError::TopicFull(full));
        }
        let Some(limit) = self.settings.group_waiting() else { return Ok(()) };
        let mut of_groups = HashMap::with_hasher(FixedState::default());
        for (_, name) in new.into_iter().filter_map(|copy| copy.record.group()) {
            let more = of_groups.entry(name).or_insert(0);
            *more += 1;
            let full = TopicFull::of(self.jobs.waiting_in(name), limit, *more);
            if let (Some(full), Ok(group)) = (full, GroupName::new(name)) {
                return Err(StoreError::GroupFull { group, full });
            }
        }
        Ok(())
    }

    /// The state of what a copy meets: the job and the broadcast of an id are two.
    fn state_of(&self, copy: &JobCopy) -> Option<State> {
        match copy.is_broadcast {
            true => self.broadcasts.contains(&copy.id).then_some(State::Delayed),
            false => self.jobs.state(&copy.id),
        }
    }

    fn put_copy(&mut self, now: Now, copy: JobCopy) {
        let JobCopy { id, record, crashes, state, at, is_broadcast, taken_until } = copy;
        if let Some(until) = taken_until {
            self.taken.imported(now, &id, until);
        }
        self.record.note(&id, || Transition::Imported { state });
        if is_broadcast {
            self.broadcasts.remove(&id);
            return self.delay_broadcast(now, id, record, at);
        }
        self.jobs.remove(&id);
        if state == State::Delayed {
            self.signal_earlier_head(now, at);
        }
        self.jobs.insert(id, Slot::new(record, crashes, Place::Timed(state, at)));
    }
}

/// The copies that would be jobs that wait and did not before. A schedule is none.
fn new_waiting<'a>(copies: &'a [JobCopy], outcomes: &[ImportOutcome]) -> Vec<&'a JobCopy> {
    let is_new = |(copy, outcome): &(&JobCopy, &ImportOutcome)| {
        let waits = copy.state == State::Delayed && !copy.is_broadcast && copy.id.schedule_name().is_none();
        waits && **outcome == ImportOutcome::Added
    };
    copies.iter().zip(outcomes).filter(is_new).map(|(copy, _)| copy).collect()
}

/// The outcome of a copy in a batch of which nothing is done.
const fn not_done(outcome: ImportOutcome) -> ImportOutcome {
    match outcome {
        ImportOutcome::Exists(_) | ImportOutcome::Repeated => outcome,
        ImportOutcome::Added | ImportOutcome::Replaced(_) | ImportOutcome::NotDone => ImportOutcome::NotDone,
    }
}
