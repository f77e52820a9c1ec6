//! The step that acts from outside: `command` deletes, cancels, acks and requeues by id (PROTOCOL.md rules 13, 15, 17).

use super::calls::Kept;
use super::now::Now;
use super::pending::{End, Ended, PendingCommand};
use super::places::Place;
use super::topic::{Topic, within};
use crate::job::{Fence, JobId, ProducerId, Record, State};
use crate::store::{BatchAnswer, Command, CommandKind, CommandOutcome, Numbered, StoreError};

/// Whether anything changed, and what was removed.
type Effect = (bool, Option<Record>);

impl Topic {
    /// Withdraws each in order. O(n log n).
    pub(crate) fn command(
        &mut self,
        now: Now,
        producer: &ProducerId,
        batch: &Numbered<Command>,
    ) -> Result<BatchAnswer<CommandOutcome>, StoreError> {
        within("the number of withdrawals", batch.items.len())?;
        if let Some(kept) = self.calls.kept(now, producer, batch.number) {
            return kept.commanded();
        }
        let outcomes: Vec<_> = batch.items.iter().map(|item| self.command_one(now, item)).collect();
        let states = outcomes.iter().map(|outcome| CommandOutcome { removed: None, ..outcome.clone() });
        self.calls.keep(now, producer, batch.number, Kept::Commanded(states.collect()));
        Ok(BatchAnswer::Done(outcomes))
    }

    fn command_one(&mut self, now: Now, Command { verb, id, fence }: &Command) -> CommandOutcome {
        let found = self.state(id);
        let (changed, removed) = match (verb, found) {
            (_, None) => (false, None),
            (CommandKind::Delete, Some(state)) => self.delete(id, state, Ended::Deleted, *verb),
            (CommandKind::Cancel, Some(state)) => self.delete(id, state, Ended::Cancelled, *verb),
            (CommandKind::Ack, Some(state)) => self.ack(now, id, state, *fence),
            (CommandKind::Requeue, Some(state)) => (self.requeue(now, id, state, *fence), None),
        };
        CommandOutcome { found, changed, removed }
    }

    /// Removes all that is known under the id; of a running job the broadcast and a waiting replacement go at once, the
    /// job itself when its run ends.
    fn delete(&mut self, id: &JobId, state: State, how: Ended, verb: CommandKind) -> Effect {
        let publish = self.broadcasts.remove(id);
        if state != State::Running {
            return (true, self.jobs.remove(id).or(publish));
        }
        let end = Some(End { how, fence: None });
        let changed = self.pending(id, |pending| {
            let changes = pending.end != end || pending.replacement.is_some();
            *pending = PendingCommand { end, replacement: None };
            changes
        });
        self.notices.pending(verb, id.clone());
        (changed || publish.is_some(), None)
    }

    /// Ends a waiting job (with its broadcast) without a fence, a parked one under its parking fence, a running one when
    /// its run ends.
    fn ack(&mut self, now: Now, id: &JobId, state: State, fence: Option<Fence>) -> Effect {
        match state {
            State::Delayed if fence.is_none() => {
                let publish = self.broadcasts.remove(id);
                let removed = self
                    .jobs
                    .state(id)
                    .filter(|state| *state == State::Delayed)
                    .and_then(|_| self.finish(now, id, Ended::Acked));
                (true, removed.or(publish))
            }
            State::Unacked if self.is_of_run(id, fence) => (true, self.finish(now, id, Ended::Acked)),
            State::Running => (self.ack_run(id, fence), None),
            State::Delayed | State::Unacked | State::Dead | State::Done => (false, None),
        }
    }

    /// Of two acks that name runs the one of the later run counts, an ack that names none goes before both; a delete or
    /// cancel stays what it is.
    fn ack_run(&mut self, id: &JobId, fence: Option<Fence>) -> bool {
        let end = Some(End { how: Ended::Acked, fence });
        let changed = self.pending(id, |pending| {
            let counts = match pending.end {
                None => true,
                Some(End { fence: None, .. }) => false,
                Some(End { fence: known, .. }) => fence.is_none() || fence > known,
            };
            if counts {
                pending.end = end;
            }
            if counts
                && fence.is_none()
                && let Some(replacement) = &mut pending.replacement
            {
                replacement.conditional = false;
            }
            counts
        });
        if changed && fence.is_none() {
            self.notices.pending(CommandKind::Ack, id.clone());
        }
        changed
    }

    /// Back to DELAYED, due now: a DEAD one with fresh attempts, a parked one as it was.
    fn requeue(&mut self, now: Now, id: &JobId, state: State, fence: Option<Fence>) -> bool {
        if !matches!(state, State::Dead | State::Unacked) || !self.is_of_run(id, fence) {
            return false;
        }
        let slot = self.jobs.get_mut(id).expect("its state is known");
        slot.crashes = 0;
        let metadata = (state == State::Dead).then(|| {
            let mut metadata = slot.record.metadata().unwrap_or_default();
            (metadata.attempts, metadata.exhausted, metadata.expires_at) = (0, false, None);
            metadata
        });
        slot.with_metadata(metadata, None);
        self.delay(now, id, now.ceil());
        true
    }

    /// Whether `fence`, if there is one, is of the run that parked the job.
    fn is_of_run(&self, id: &JobId, fence: Option<Fence>) -> bool {
        let parked_by = || self.jobs.get(id).and_then(|slot| slot.record.fixed().parked_by);
        fence.is_none() || fence == parked_by()
    }

    /// Changes the mark of a running job.
    fn pending<T>(&mut self, id: &JobId, change: impl FnOnce(&mut PendingCommand) -> T) -> T {
        let Some(Place::Running(run)) = self.jobs.get_mut(id).map(|slot| &mut slot.place) else {
            unreachable!("the state of the job is RUNNING")
        };
        change(run.pending.get_or_insert_default())
    }
}
