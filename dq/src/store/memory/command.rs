//! The step `command`: delete, cancel, ack and requeue by id (rules 13 and 15). And `give_up`: a job that no node can decode
//! becomes DEAD, with its payload.

use super::now::Now;
use super::places::{Place, Room};
use super::signals::Recipient;
use super::topic::Topic;
use crate::job::{Cause, Fence, JobId, ProducerId, Record, State};
use crate::store::step::DEFAULT_BYTES;
use crate::store::{
    Command, CommandKind, CommandOutcome, End, Ended, GiveUp, PendingCommand, Signal, Transition, kept_of,
};

/// Whether anything changed, and the record that was removed.
type Effect = (bool, Option<Record>);

impl Topic {
    /// Applies the commands in order. O(n log n).
    pub(crate) fn command(&mut self, now: Now, producer: &ProducerId, commands: &[Command]) -> Vec<CommandOutcome> {
        let mut outcomes: Vec<_> = commands.iter().map(|item| self.command_one(now, producer, item)).collect();
        let mut room = Room::new(DEFAULT_BYTES);
        for outcome in &mut outcomes {
            outcome.removed.take_if(|record| !room.takes(record.as_bytes().len()));
        }
        outcomes
    }

    fn command_one(
        &mut self,
        now: Now,
        producer: &ProducerId,
        Command { verb, id, fence, if_version, by }: &Command,
    ) -> CommandOutcome {
        let found = self.state(id);
        let other_version = match if_version {
            Some(wanted) if found.is_some() => Some(self.present(id).version).filter(|version| version != wanted),
            _ => None,
        };
        let (changed, removed) = match (verb, found) {
            _ if other_version.is_some() => (false, None),
            (_, None) => (false, None),
            (CommandKind::Delete, Some(state)) => self.delete(id, state, Ended::Deleted, *verb),
            (CommandKind::Cancel, Some(state)) => self.delete(id, state, Ended::Cancelled, *verb),
            (CommandKind::Ack, Some(state)) => self.ack(now, id, state, *fence),
            (CommandKind::Requeue, Some(state)) => (self.requeue(now, id, state, *fence), None),
            (CommandKind::Pass, Some(state)) => (state != State::Running && self.jobs.pass(id), None),
        };
        if changed && matches!(verb, CommandKind::Delete | CommandKind::Cancel) {
            self.taken.deleted(now, id);
        }
        // A pass moves no job.
        if changed && *verb != CommandKind::Pass {
            self.record.note(id, || move_of(*verb, found, by.as_deref().unwrap_or(producer.as_str()).to_owned()));
        }
        CommandOutcome { found, changed, removed, other_version }
    }

    /// Removes the job and the broadcast with this id. For a running job, broadcast and replacement go at once, and the job
    /// itself when its run ends.
    fn delete(&mut self, id: &JobId, state: State, how: Ended, verb: CommandKind) -> Effect {
        let broadcast = self.broadcasts.remove(id);
        if state != State::Running {
            return (true, self.jobs.remove(id).or(broadcast));
        }
        let end = Some(End { how, fence: None });
        let changed = self.change_pending(id, |pending| {
            let changes = pending.end != end || pending.replacement.is_some();
            *pending = PendingCommand { end, replacement: None };
            changes
        });
        self.notices.push(Recipient::Nodes, Signal::Command(verb, id.clone()));
        (changed || broadcast.is_some(), None)
    }

    /// Ends a DELAYED job and its broadcast (only without a fence), an UNACKED job (without a fence or under its parking
    /// fence), or a running job when its run ends.
    fn ack(&mut self, now: Now, id: &JobId, state: State, fence: Option<Fence>) -> Effect {
        match state {
            State::Delayed if fence.is_none() => {
                let broadcast = self.broadcasts.remove(id);
                let removed = self
                    .jobs
                    .state(id)
                    .filter(|state| *state == State::Delayed)
                    .and_then(|_| self.finish(now, id, Ended::Acked));
                (true, removed.or(broadcast))
            }
            State::Unacked if self.matches_parking_fence(id, fence) => (true, self.finish(now, id, Ended::Acked)),
            State::Running => (self.ack_run(id, fence), None),
            State::Delayed | State::Unacked | State::Dead | State::Done => (false, None),
        }
    }

    /// Combines the ack with the end that is pending: of two fenced acks the larger fence wins, an unfenced ack overrides
    /// a fenced one, and a delete or cancel stays.
    fn ack_run(&mut self, id: &JobId, fence: Option<Fence>) -> bool {
        let end = Some(End { how: Ended::Acked, fence });
        let changed = self.change_pending(id, |pending| {
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
            self.notices.push(Recipient::Nodes, Signal::Command(CommandKind::Ack, id.clone()));
        }
        changed
    }

    /// DEAD or UNACKED → DELAYED, due now. Clears attempts, exhaustion and expiry of a DEAD job.
    fn requeue(&mut self, now: Now, id: &JobId, state: State, fence: Option<Fence>) -> bool {
        if !matches!(state, State::Dead | State::Unacked) || !self.matches_parking_fence(id, fence) {
            return false;
        }
        let mut slot = self.jobs.get_mut(id).expect("its state is known");
        slot.set_crashes(0);
        let metadata = (state == State::Dead).then(|| {
            let mut metadata = slot.record.metadata().unwrap_or_default();
            (metadata.attempts, metadata.exhausted, metadata.expires_at) = (0, false, None);
            metadata
        });
        slot.write_metadata(metadata, None);
        self.delay(now, id, now.floor());
        true
    }

    /// Gives the job up, if it waits, is parked or is DEAD, and has the payload that was read. O(log n).
    pub(crate) fn give_up_undecodable(&mut self, now: Now, job: &GiveUp) -> bool {
        let Some(mut slot) = self.jobs.get_mut(&job.id) else { return false };
        let Place::Timed(place, _) = slot.place else { return false };
        if place == State::Done || kept_of(&slot.record) != job.kept() {
            return false;
        }
        slot.set_metadata(&job.metadata());
        slot.set_crashes(0);
        self.jobs.free_seat(&job.id);
        if place != State::Dead {
            self.jobs.move_to(&job.id, State::Dead, now.floor());
            self.record.note(&job.id, || Transition::Dead { cause: Some(Cause::Decode), node: String::new() });
        }
        true
    }

    /// Whether there is no `fence`, or `fence` is the parking fence of the job.
    fn matches_parking_fence(&self, id: &JobId, fence: Option<Fence>) -> bool {
        let parked_by = || self.jobs.get(id).and_then(|slot| slot.record.fixed().parked_by);
        fence.is_none() || fence == parked_by()
    }

    /// Changes the pending command of a running job.
    fn change_pending<T>(&mut self, id: &JobId, change: impl FnOnce(&mut PendingCommand) -> T) -> T {
        let mut slot = self.jobs.get_mut(id).expect("its state is known");
        slot.change_pending(change).expect("the state of the job is RUNNING")
    }
}

const fn move_of(command: CommandKind, found: Option<State>, by: String) -> Transition {
    match (command, found) {
        (_, Some(State::Running)) => Transition::CommandWaits { command, by },
        (CommandKind::Delete | CommandKind::Cancel, _) => Transition::Deleted { by },
        (CommandKind::Ack, _) => Transition::Done { by },
        (CommandKind::Requeue | CommandKind::Pass, _) => Transition::Requeued { by },
    }
}
