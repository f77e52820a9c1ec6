//! An add that extends a job that waits (`add_or_extend`, rule 28).

use std::collections::HashSet;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::change::{Edit, Present};
use super::now::Now;
use super::pending::AddedJob;
use super::places::Slot;
use super::topic::Topic;
use crate::job::{JobId, ProducerId, State};
use crate::store::step::USUAL_BYTES;
use crate::store::{AddOutcome, JobMove, LAST_VERSION, NewJob, OnDuplicate};
use crate::time::Timestamp;

impl Topic {
    /// Gives a job that waits the new payload and the new due time.
    pub(super) fn extend(
        &mut self,
        now: Now,
        producer: &ProducerId,
        id: &JobId,
        new: &AddedJob,
        at_most: Option<Duration>,
    ) -> AddOutcome {
        let Present { version, first_added, .. } = self.present(id);
        let Some(version) = version.checked_add(1) else { return AddOutcome::Refused(LAST_VERSION.to_owned()) };
        let first = first_added.unwrap_or_else(|| now.ceil());
        let due = bounded(now, new.due, first, at_most);
        self.signal_earlier_head_of(now, id, due);
        let edit = Edit { version, first_added: Some(first), payload: Some(&new.record) };
        self.edit(id, &edit, |_| due);
        self.moves.note(id, || JobMove::Changed { due: Some(due), by: producer.to_string() });
        AddOutcome::Extended { due, version }
    }

    fn signal_earlier_head_of(&mut self, now: Now, id: &JobId, due: Timestamp) {
        if self.jobs.state(id) == Some(State::Delayed) {
            self.signal_earlier_head(now, due);
        }
        if self.broadcasts.contains(id) && self.broadcasts.head().is_none_or(|head| due < head) {
            self.signal_earlier_broadcast(now);
        }
    }

    pub(super) fn has_replacement(&self, id: &JobId) -> bool {
        let run = self.jobs.get(id).and_then(Slot::run);
        run.and_then(|run| run.pending.as_ref()).is_some_and(|pending| pending.replacement.is_some())
    }

    /// The same for the replacement of a running job, which then waits in any case.
    pub(super) fn extend_replacement(
        &mut self,
        now: Now,
        producer: &ProducerId,
        id: &JobId,
        new: &AddedJob,
        at_most: Option<Duration>,
    ) -> AddOutcome {
        let mut slot = self.jobs.get_mut(id).expect("its state is known");
        let pending = slot.pending_mut().expect("the state of the job is RUNNING");
        let old = pending.replacement.as_mut().expect("a replacement waits");
        let fixed = old.job.record.fixed();
        let Some(version) = fixed.version.checked_add(1) else { return AddOutcome::Refused(LAST_VERSION.to_owned()) };
        let first = fixed.first_added.unwrap_or_else(|| now.ceil());
        let due = bounded(now, new.due, first, at_most);
        let edit = Edit { version, first_added: Some(first), payload: Some(&new.record) };
        old.job.record = edit.of(&old.job.record, Some((old.job.due, due)));
        (old.job.due, old.conditional) = (due, false);
        self.moves.note(id, || JobMove::Changed { due: Some(due), by: producer.to_string() });
        AddOutcome::Extended { due, version }
    }

    /// The jobs whose broadcasts or replacements have too many bytes to be extended in one batch, with those before them (rule 5).
    pub(super) fn too_large_to_extend(&self, jobs: &[NewJob]) -> HashSet<JobId, FixedState> {
        let (mut named, mut over, mut bytes) = (HashSet::with_hasher(FixedState::default()), HashSet::default(), 0);
        let extends = |job: &&NewJob| !job.generated && matches!(job.on_duplicate, OnDuplicate::Extend { .. });
        for NewJob { id, .. } in jobs.iter().filter(extends) {
            if !named.insert(id) {
                continue;
            }
            let size = match self.state(id) {
                Some(State::Delayed) => self.broadcasts.get(id).map_or(0, |(_, record)| record.as_bytes().len()),
                Some(State::Running) => self.jobs.replacement_size(id),
                _ => 0,
            };
            let is_first = bytes == 0;
            bytes += size;
            if size > 0 && !is_first && bytes > USUAL_BYTES {
                over.insert(id.clone());
            }
        }
        over
    }
}

/// The due time, at most `at_most` after the first add and never before now.
fn bounded(now: Now, due: Timestamp, first: Timestamp, at_most: Option<Duration>) -> Timestamp {
    at_most.map_or(due, |at_most| due.min(first.after(at_most)).max(now.ceil()))
}
