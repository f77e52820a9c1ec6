//! The step `command` (rules 13, 15, 17 and 24).

use super::calls::{Call, KeptAnswer};
use super::{End, Place, Topic};
use dq::job::state::Event;
use dq::job::{Fence, JobId, Metadata, ProducerId, Record, State};
use dq::store::{BatchAnswer, Command, CommandKind, CommandOutcome, Numbered};

impl Topic {
    pub(in super::super) fn command(
        &mut self,
        producer: &ProducerId,
        batch: &Numbered<Command>,
    ) -> BatchAnswer<CommandOutcome> {
        match self.call(producer, batch.number) {
            Call::Late => return BatchAnswer::Late,
            Call::Repeat(kept) => return kept.commanded(),
            Call::New => {}
        }
        let outcomes: Vec<_> = batch.items.iter().map(|item| self.command_one(item)).collect();
        // The answer to a repeat has states, but no records.
        let kept = outcomes.iter().map(|outcome| CommandOutcome { removed: None, ..outcome.clone() }).collect();
        self.keep(producer, batch.number, KeptAnswer::Commanded(kept));
        BatchAnswer::Done(outcomes)
    }

    fn command_one(&mut self, item: &Command) -> CommandOutcome {
        let found = self.state(&item.id);
        let (changed, removed) = match (item.verb, found) {
            (_, None) => (false, None),
            (CommandKind::Delete | CommandKind::Cancel, Some(State::Running)) => {
                (self.end_run(&item.id, item.verb), None)
            }
            (CommandKind::Delete | CommandKind::Cancel, Some(_)) => {
                let broadcast = self.broadcasts.remove(&item.id).map(|(_, record)| record);
                (true, self.remove_job(&item.id, Event::Deleted).or(broadcast))
            }
            (CommandKind::Ack, Some(state)) => self.ack(&item.id, state, item.fence),
            (CommandKind::Requeue, Some(state)) => (self.requeue(&item.id, state, item.fence), None),
        };
        CommandOutcome { found, changed, removed }
    }

    /// Leaves an end in the pending command of a running job; its broadcast and its replacement go at once.
    fn end_run(&mut self, id: &JobId, verb: CommandKind) -> bool {
        let had_broadcast = self.broadcasts.remove(id).is_some();
        let run = self.run_mut(id).expect("the job is RUNNING");
        let end = Some(End { verb, fence: None });
        let changed = run.replacement.take().is_some() || run.end != end;
        run.end = end;
        changed || had_broadcast
    }

    fn ack(&mut self, id: &JobId, state: State, fence: Option<Fence>) -> (bool, Option<Record>) {
        match state {
            State::Delayed if fence.is_none() => {
                let broadcast = self.broadcasts.remove(id).map(|(_, record)| record);
                let waits = self.jobs.get(id).is_some_and(|job| job.place.state() == State::Delayed);
                (true, waits.then(|| self.acked_from_outside(id)).flatten().or(broadcast))
            }
            State::Unacked if self.matches_parking_fence(id, fence) => (true, self.acked_from_outside(id)),
            State::Running => (self.ack_run(id, fence), None),
            _ => (false, None),
        }
    }

    /// An unfenced ack overrides a fenced one, of two fenced acks the larger fence wins, and a delete or cancel stays.
    fn ack_run(&mut self, id: &JobId, fence: Option<Fence>) -> bool {
        let run = self.run_mut(id).expect("the job is RUNNING");
        let counts = match (run.end.map(|end| end.fence), fence) {
            (None, _) | (Some(Some(_)), None) => true,
            (Some(None), _) => false,
            (Some(Some(known)), Some(named)) => named > known,
        };
        if counts {
            run.end = Some(End { verb: CommandKind::Ack, fence });
        }
        if counts && fence.is_none() {
            // The end applies to any run, so a conditional replacement becomes unconditional.
            run.replacement.iter_mut().for_each(|replacement| replacement.only_if_ended = false);
        }
        counts
    }

    fn acked_from_outside(&mut self, id: &JobId) -> Option<Record> {
        let until = self.now();
        let job = self.jobs.get_mut(id)?;
        let retain = job.metadata().retain;
        if retain.is_zero() {
            return self.remove_job(id, Event::AckedFromOutside { retain: false });
        }
        job.crashes = 0;
        job.go(Event::AckedFromOutside { retain: true }, Place::Done(until.after(retain)));
        None
    }

    fn requeue(&mut self, id: &JobId, state: State, fence: Option<Fence>) -> bool {
        if !matches!(state, State::Dead | State::Unacked) || !self.matches_parking_fence(id, fence) {
            return false;
        }
        let due = self.after(std::time::Duration::ZERO);
        let job = self.jobs.get_mut(id).expect("the job is DEAD or UNACKED");
        let metadata = match state {
            State::Dead => Metadata { attempts: 0, exhausted: false, expires_at: None, ..job.metadata() },
            _ => job.metadata(),
        };
        job.write(Some(&metadata), None);
        job.crashes = 0;
        job.go(Event::Requeued, Place::Delayed(due));
        true
    }

    /// Whether there is no `fence`, or `fence` is the parking fence of the job.
    fn matches_parking_fence(&self, id: &JobId, fence: Option<Fence>) -> bool {
        fence.is_none() || self.jobs.get(id).is_some_and(|job| job.metadata().parked_by == fence)
    }
}
