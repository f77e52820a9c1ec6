//! The step that acts from outside: `withdraw` deletes, cancels, acks and requeues by id (PROTOCOL.md rules 13, 15, 17).

use super::calls::Kept;
use super::marks::{End, Ended, Mark};
use super::now::Now;
use super::places::Place;
use super::topic::{Topic, within};
use crate::environment::rules::without;
use crate::job::{Fence, JobId, ProducerId, Record, State};
use crate::store::{BatchAnswer, Numbered, StoreError, WithdrawOutcome, WithdrawVerb, Withdrawal};

/// Whether anything changed, and what was removed.
type Effect = (bool, Option<Record>);

impl Topic {
    /// Withdraws each in order. O(n log n).
    pub(crate) fn withdraw(
        &mut self,
        now: Now,
        producer: &ProducerId,
        batch: &Numbered<Withdrawal>,
    ) -> Result<BatchAnswer<WithdrawOutcome>, StoreError> {
        within("the number of withdrawals", batch.items.len())?;
        if let Some(kept) = self.calls.kept(now, producer, batch.number) {
            return kept.withdrawn();
        }
        let outcomes: Vec<_> = batch.items.iter().map(|item| self.withdraw_one(now, item)).collect();
        let states = outcomes.iter().map(|outcome| WithdrawOutcome { removed: None, ..outcome.clone() });
        self.calls.keep(now, producer, batch.number, Kept::Withdrawn(states.collect()));
        Ok(BatchAnswer::Done(outcomes))
    }

    fn withdraw_one(&mut self, now: Now, Withdrawal { verb, id, fence }: &Withdrawal) -> WithdrawOutcome {
        let found = self.state(id);
        let (changed, removed) = match (verb, found) {
            (_, None) => (false, None),
            (WithdrawVerb::Delete, Some(state)) => self.delete(id, state, Ended::Deleted, *verb),
            (WithdrawVerb::Cancel, Some(state)) => self.delete(id, state, Ended::Cancelled, *verb),
            (WithdrawVerb::Ack, Some(state)) => self.ack(now, id, state, *fence),
            (WithdrawVerb::Requeue, Some(state)) => (self.requeue(now, id, state, *fence), None),
        };
        WithdrawOutcome { found, changed, removed }
    }

    /// Removes all that is known under the id; of a running job the broadcast and a waiting replacement go at once, the
    /// job itself when its run ends.
    fn delete(&mut self, id: &JobId, state: State, how: Ended, verb: WithdrawVerb) -> Effect {
        let cast = self.casts.remove(id);
        if state != State::Running {
            return (true, self.jobs.remove(id).or(cast));
        }
        let end = Some(End { how, fence: None });
        if without(13) {
            return (true, None);
        }
        let changed = self.mark(id, |mark| {
            let changes = mark.end != end || mark.replacement.is_some();
            *mark = Mark { end, replacement: None };
            changes
        });
        self.notices.mark(verb, id.clone());
        (changed || cast.is_some(), None)
    }

    /// Ends a waiting job (with its broadcast) without a fence, a parked one under its parking fence, a running one when
    /// its run ends.
    fn ack(&mut self, now: Now, id: &JobId, state: State, fence: Option<Fence>) -> Effect {
        match state {
            State::Delayed if fence.is_none() => {
                let cast = self.casts.remove(id);
                let removed = self
                    .jobs
                    .state(id)
                    .filter(|state| *state == State::Delayed)
                    .and_then(|_| self.finish(now, id, Ended::Acked));
                (true, removed.or(cast))
            }
            State::Unacked if self.is_of_run(id, fence) => (true, self.finish(now, id, Ended::Acked)),
            State::Running => (self.ack_run(id, fence), None),
            State::Delayed | State::Unacked | State::Dead | State::Done => (false, None),
        }
    }

    /// Of two acks that name runs the one of the later run counts, an ack that names none goes before both; a delete or
    /// cancel stays what it is.
    fn ack_run(&mut self, id: &JobId, fence: Option<Fence>) -> bool {
        if without(13) {
            return true;
        }
        let end = Some(End { how: Ended::Acked, fence });
        let changed = self.mark(id, |mark| {
            let counts = match mark.end {
                None => true,
                Some(End { fence: None, .. }) => false,
                Some(End { fence: known, .. }) => fence.is_none() || fence > known,
            };
            if counts {
                mark.end = end;
            }
            if counts
                && fence.is_none()
                && let Some(replacement) = &mut mark.replacement
            {
                replacement.conditional = false;
            }
            counts
        });
        if changed && fence.is_none() {
            self.notices.mark(WithdrawVerb::Ack, id.clone());
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
        let front = (state == State::Dead).then(|| {
            let mut front = slot.record.front().unwrap_or_default();
            (front.attempts, front.exhausted, front.expires_at) = (0, false, None);
            front
        });
        slot.refront(front, None);
        self.delay(now, id, now.ceil());
        true
    }

    /// Whether `fence`, if there is one, is of the run that parked the job.
    fn is_of_run(&self, id: &JobId, fence: Option<Fence>) -> bool {
        let parked_by = || self.jobs.get(id).and_then(|slot| slot.record.fixed().parked_by);
        fence.is_none() || fence == parked_by()
    }

    /// Changes the mark of a running job.
    fn mark<T>(&mut self, id: &JobId, change: impl FnOnce(&mut Mark) -> T) -> T {
        let Some(Place::Running(run)) = self.jobs.get_mut(id).map(|slot| &mut slot.place) else {
            unreachable!("the state of the job is RUNNING")
        };
        change(run.mark.get_or_insert_default())
    }
}
