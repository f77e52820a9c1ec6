//! The step that adds: `add` (PROTOCOL.md rules 2, 12, 17 and 24).

use std::collections::HashSet;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::calls::Kept;
use super::now::Now;
use super::pending::{Fresh, PendingCommand, Replacement};
use super::places::{Place, Shelf};
use super::topic::{Topic, within};
use crate::job::{Deliver, JobId, ProducerId, Record, State};
use crate::store::{AddOutcome, BatchAnswer, Due, NewJob, Numbered, OnDuplicate, StoreError};
use crate::time::Timestamp;

/// The last time that fits in a record.
const LAST: Timestamp = Timestamp::from_millis((1 << 48) - 1);

impl Topic {
    /// → DELAYED, among the broadcasts, or into the mark of a running job. O(n log n).
    pub(crate) fn add(
        &mut self,
        now: Now,
        producer: &ProducerId,
        batch: Numbered<NewJob>,
    ) -> Result<BatchAnswer<AddOutcome>, StoreError> {
        within("the number of jobs to add", batch.items.len())?;
        if let Some(kept) = self.calls.kept(now, producer, batch.number) {
            return kept.added();
        }
        let mut named = HashSet::with_capacity_and_hasher(batch.items.len(), FixedState::default());
        let mut outcomes = Vec::with_capacity(batch.items.len());
        for job in batch.items {
            let outcome = if named.contains(&job.id) {
                AddOutcome::Repeated
            } else {
                named.insert(job.id.clone());
                self.add_one(now, job)
            };
            outcomes.push(outcome);
        }
        self.calls.keep(now, producer, batch.number, Kept::Added(outcomes.clone()));
        Ok(BatchAnswer::Done(outcomes))
    }

    fn add_one(&mut self, now: Now, job: NewJob) -> AddOutcome {
        let due = match job.due {
            Due::After(delay) => now.after(delay),
            Due::At(at) => at.max(now.ceil()),
        };
        let record = match stamped(job.record, due, job.expires_after) {
            Ok(record) => record,
            Err(reason) => return AddOutcome::Refused(reason),
        };
        let fresh = Fresh { record, due, deliver: job.deliver };
        match (self.state(&job.id), job.on_duplicate) {
            (Some(State::Running), on_duplicate) => self.add_over_run(&job.id, fresh, on_duplicate),
            (None | Some(State::Done), _) => {
                self.put(now, &job.id, fresh);
                AddOutcome::Added
            }
            (Some(state), OnDuplicate::Replace) => {
                self.put(now, &job.id, fresh);
                AddOutcome::Replaced(state)
            }
            (Some(state), OnDuplicate::Reject | OnDuplicate::Keep) => AddOutcome::Exists(state),
        }
    }

    /// Over a running job only its mark changes: the new one takes the place when the run ends.
    fn add_over_run(&mut self, id: &JobId, fresh: Fresh, on_duplicate: OnDuplicate) -> AddOutcome {
        let broadcast_waits = self.broadcasts.contains(id);
        let slot = self.jobs.get_mut(id);
        let Some(Place::Running(run)) = slot.map(|slot| &mut slot.place) else {
            unreachable!("the state of the job is RUNNING")
        };
        let pending = run.pending.as_deref();
        let is_over = pending.is_some_and(PendingCommand::is_unfenced_end);
        let may_wait = pending.is_some_and(|pending| pending.end.is_some() && pending.replacement.is_none());
        let (conditional, outcome) = match on_duplicate {
            OnDuplicate::Replace => (false, AddOutcome::ReplacementWaits),
            _ if is_over && broadcast_waits => return AddOutcome::Exists(State::Delayed),
            _ if is_over && may_wait => (false, AddOutcome::ReplacementWaits),
            OnDuplicate::Keep if may_wait => (true, AddOutcome::ReplacementIfEnds),
            OnDuplicate::Keep | OnDuplicate::Reject => return AddOutcome::Exists(State::Running),
        };
        run.pending.get_or_insert_default().replacement = Some(Replacement { fresh, conditional });
        outcome
    }

    /// Puts a new job where it belongs, in the place of all that was known under its id.
    pub(super) fn put(&mut self, now: Now, id: &JobId, fresh: Fresh) {
        self.jobs.remove(id);
        self.broadcasts.remove(id);
        let Fresh { record, due, deliver } = fresh;
        if deliver != Deliver::Queue {
            self.delay_broadcast(now, id.clone(), record.clone(), due);
        }
        if deliver != Deliver::Broadcast {
            self.tell_earlier_head(now, due);
            self.jobs.insert(id.clone(), record, Shelf::Delayed, due);
        }
    }
}

/// The record as it is kept: with its expiry as a time, and parked by nobody.
fn stamped(record: Record, due: Timestamp, expires_after: Option<Duration>) -> Result<Record, String> {
    if expires_after.is_none() && record.fixed().parked_by.is_none() {
        return Ok(record);
    }
    let mut metadata = record.metadata().map_err(|bad| bad.to_string())?;
    metadata.parked_by = None;
    if let Some(after) = expires_after {
        metadata.expires_at = Some(due.after(after).min(LAST));
    }
    Ok(record.with_metadata(&metadata))
}
