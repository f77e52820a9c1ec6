//! Rollback: runs that are taken back, so that their jobs wait again, or go back as they were, with due time and attempt unchanged.

use super::Runs;
use crate::context::condition::Condition;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::slab::{HeldId, RunId};
use crate::context::topic::stage::Stage;
use crate::job::{JobId, Token};
use crate::store::step::NoteVerdict;
use crate::store::{CommandKind, RequestKind};

impl Runs {
    /// A signal tells of a command for a running job. A job that has not started goes back, and if there is such a command it takes
    /// effect in that step. A cancel also fires the token of a running handler, which may stop; but a signal is a hint, so the store is
    /// asked first. The pending command takes effect however the handler ends.
    pub(crate) fn on_command(&mut self, kind: CommandKind, id: JobId, held: &mut Held) {
        let Some(job) = held.find(&id) else { return };
        if held.at(job).is_some_and(|job| job.stage == Stage::Waiting) {
            held.roll_back(job);
        } else if let Some(run_id) = held.run_of(job) {
            if self.wait_again(run_id, held) {
                held.roll_back(job);
            } else if kind == CommandKind::Cancel {
                self.cancels.insert(id, false);
            }
        }
    }

    /// The store has answered under which ends these runs are; `None`: the request was late.
    pub(crate) fn on_commands_read(&mut self, runs: Vec<(JobId, Token)>, notes: Option<Vec<NoteVerdict>>, held: &Held) {
        let Some(notes) = notes else { return self.send_again(None) };
        for ((id, token), note) in runs.into_iter().zip(notes) {
            self.cancels.remove(&id);
            if note == NoteVerdict::Cancelled
                && let Some(job) = held.under(&id, token)
                && let Some(run_id) = held.run_of(job)
            {
                self.table.ask_to_stop(run_id, job);
            }
        }
    }

    /// Requests (of one kind, or all) will not be answered, so the store is asked again.
    pub(crate) fn send_again(&mut self, kind: Option<RequestKind>) {
        if kind.is_none_or(|kind| kind == RequestKind::Isolate) {
            self.cancels.values_mut().for_each(|asked| *asked = false);
        }
    }

    /// Takes back every run that was handed over and has not begun, unless its job was acked on claim.
    pub(crate) fn take_back_all(&mut self, held: &mut Held) {
        for id in held.ids(|job| matches!(job.stage, Stage::Running(_))) {
            if let Some(run_id) = held.run_of(id) {
                self.wait_again(run_id, held);
            }
        }
        self.asking.extend(self.runners.end_taken_back());
    }

    /// Takes a run of a handler back that has not begun: its jobs wait again. Returns whether it did.
    pub(super) fn wait_again(&mut self, run_id: RunId, held: &mut Held) -> bool {
        let Some(run) = self.table.take_back_handler(run_id) else { return false };
        for (_, job) in run.jobs.into_list() {
            if held.at(job.held).is_some() {
                held.set(job.held, Stage::Waiting);
            }
        }
        true
    }

    /// At the end of the grace, all runs are given up.
    pub(crate) fn give_up_all(&mut self) {
        for run_id in self.table.all() {
            match self.table.take_back(run_id) {
                Some(run) if run.detached => {
                    let why = "its handler did not begin before the node stopped";
                    run.jobs.jobs().for_each(|job| self.parts.report_lost(&job.id, why, None));
                }
                Some(_) => {}
                None if self.table.give_up(run_id).is_some() => self.parts.stats.cancelled(),
                None => {}
            }
        }
    }

    /// The user's runtime dropped a handler that was not given up: it has shut down, and would drop all others too. Jobs that
    /// have not started go back, and other nodes take what is due.
    pub(super) fn on_handlers_gone(&mut self, moment: &mut Moment) {
        if std::mem::replace(&mut self.handlers_gone, true) {
            return;
        }
        tracing::error!(
            topic = %self.parts.key.topic,
            "the runtime of the handlers has shut down before dq, so this node claims no more jobs: shut the node down first"
        );
        let why = "the runtime of the handlers has shut down";
        self.parts.stats.condition.set(Condition::Stopped(why.into()));
        moment.push(Effect::GiveUpRole);
        moment.held.roll_back_waiting();
    }

    /// Gives up the run of a held job, if it has one, and forgets the job.
    pub(crate) fn forget(&mut self, id: HeldId, held: &mut Held) {
        self.take_away(id, held);
        held.remove(id);
    }

    /// The task has panicked: what was derived from the runs may be wrong, so it is made again.
    pub(crate) fn recover(&mut self) {
        self.table.recount();
        self.isolations.ticket = None; // the next job that must run alone queues again
    }

    /// Gives up a run of which a report was lost.
    pub(crate) fn lose(&mut self, run_id: RunId) {
        self.table.give_up(run_id);
    }

    /// Gives up the run of a held job, if it has one. A batch goes on without the job; if it has not begun, its jobs wait again.
    pub(crate) fn take_away(&mut self, id: HeldId, held: &mut Held) {
        let Some(run_id) = held.run_of(id) else { return };
        if !self.wait_again(run_id, held) && !self.table.leave_batch(run_id, id) {
            self.table.give_up(run_id);
        }
    }

    /// Cancels the handlers of a node that could not renew: other nodes may run their jobs by now.
    pub(crate) fn lose_lease(&mut self, held: &mut Held) {
        self.take_back_all(held);
        for id in held.ids(|job| matches!(job.stage, Stage::Running(_))) {
            let Some(job) = held.at(id) else { continue };
            tracing::info!(topic = %self.parts.key.topic, job.id = %job.id, "the lease could not be renewed in time; the handler is cancelled, and the job runs again");
            self.parts.stats.count.lease_lost.add(1);
            self.take_away(id, held);
            held.roll_back(id);
        }
    }
}
