//! Rollback: jobs that this node did not run go back as they were, with due time and attempt unchanged.

use std::time::Duration;

use crate::context::topic::begin::RunId;
use crate::context::topic::{HeldJob, Stage, Topic};
use crate::job::JobId;
use crate::store::CommandKind;
use crate::store::step::{Change, Wake};

impl Topic {
    /// A program sent a command for a running job. A job that has not started goes back, and the pending command takes effect
    /// in that step. A cancel also fires the token of a running handler, which may stop; the pending command takes effect
    /// however the handler ends.
    pub(in crate::context::topic) fn on_command(&mut self, kind: CommandKind, id: &JobId) {
        match self.held.get(id).map(HeldJob::stage) {
            Some(Stage::Waiting) => self.roll_back(id),
            Some(Stage::Running(run_id)) => {
                let run_id = *run_id;
                if self.wait_again(run_id) {
                    self.roll_back(id);
                } else if kind == CommandKind::Cancel {
                    self.runs.ask_to_stop(run_id, id);
                }
            }
            _ => {}
        }
    }

    /// Takes back every run that was handed over and has not begun, unless its job was acked on claim.
    pub(in crate::context::topic) fn take_back(&mut self) {
        for id in self.held.ids(|stage| matches!(stage, Stage::Running(_))) {
            if let Some(Stage::Running(run_id)) = self.held.get(&id).map(HeldJob::stage) {
                self.wait_again(*run_id);
            }
        }
    }

    /// Takes a run of a handler back that has not begun: its jobs wait again. Returns whether it did.
    fn wait_again(&mut self, run_id: RunId) -> bool {
        let Some(run) = self.runs.give_back_handler(run_id) else { return false };
        for (_, job) in run.jobs.into_list() {
            if self.held.under(&job.id, job.token).is_some() {
                self.held.set(&job.id, Stage::Waiting);
            }
        }
        true
    }

    pub(in crate::context::topic) fn roll_back(&mut self, id: &JobId) {
        self.held.set(id, Stage::settling(Change::Rollback));
    }

    /// At shutdown, jobs that have not started go back at once. So do jobs whose ack on claim is not sent yet.
    pub(in crate::context::topic) fn roll_back_waiting(&mut self) {
        let unstarted =
            |stage: &Stage| matches!(stage, Stage::Waiting | Stage::Settling { then_run: true, sent: false, .. });
        for id in self.held.ids(unstarted) {
            self.roll_back(&id);
        }
    }

    /// At the end of the grace, all runs are given up, and unfinished jobs go back if `rollback`.
    pub(in crate::context::topic) fn cancel_unfinished(&mut self, rollback: bool) {
        self.settings_decide_all();
        for run_id in self.runs.all() {
            match self.runs.give_back(run_id) {
                Some(run) if run.detached => {
                    for (_, job) in run.jobs.into_list() {
                        self.report_lost(&job.id, "its handler did not begin before the node stopped", None);
                    }
                }
                Some(_) => {}
                None if self.runs.give_up(run_id).is_some() => self.parts.stats.cancelled(),
                None => {}
            }
        }
        let unfinished = |stage: &Stage| {
            matches!(stage, Stage::Running(_) | Stage::Making(_) | Stage::Isolating | Stage::Exhausting { .. })
        };
        if rollback {
            for id in self.held.ids(unfinished) {
                self.roll_back(&id);
            }
        }
    }

    /// The user's runtime dropped a handler that was not given up: it has shut down, and would drop all others too. Jobs that
    /// have not started go back, and other nodes take what is due.
    pub(in crate::context::topic) fn on_handlers_gone(&mut self, now: Duration) {
        if std::mem::replace(&mut self.handlers_gone, true) {
            return;
        }
        tracing::error!(
            topic = %self.parts.key.topic,
            "the runtime of the handlers has shut down before dq, so this node claims no more jobs: shut the node down first"
        );
        self.parts.stats.handlers_gone();
        self.sleep.called_wake(now);
        self.pipeline.send(Wake);
        self.roll_back_waiting();
    }

    /// Gives up the run of a held job, if it has one, and forgets the job.
    pub(in crate::context::topic) fn drop_held(&mut self, id: &JobId) {
        self.give_up_run(id);
        self.held.remove(id);
    }

    /// Gives up the run of a held job, if it has one. A batch goes on without the job; if it has not begun, its jobs wait again.
    pub(in crate::context::topic) fn give_up_run(&mut self, id: &JobId) {
        let Some(Stage::Running(run_id)) = self.held.get(id).map(HeldJob::stage) else { return };
        let run_id = *run_id;
        if !self.wait_again(run_id) && !self.runs.leave_batch(run_id, id) {
            self.runs.give_up(run_id);
        }
    }
}
