//! Rollback: jobs go back as they were, with due time and attempt unchanged.

use crate::context::topic::{HeldJob, Stage, Topic};
use crate::job::JobId;
use crate::store::CommandKind;
use crate::store::step::Change;

impl Topic {
    /// Somebody left a mark on a running job. If it is held here unstarted it goes back, and the mark takes effect in that
    /// step; a cancel also fires the handler's token: the handler may stop, and however it ends the mark takes effect.
    pub(in crate::context::topic) fn on_command(&mut self, verb: CommandKind, id: &JobId) {
        match self.held.get(id).map(HeldJob::stage) {
            Some(Stage::Waiting) => {}
            Some(Stage::Running(run_id)) if verb == CommandKind::Cancel => return self.runs.ask_to_stop(*run_id),
            _ => return,
        }
        self.roll_back(id);
    }

    pub(in crate::context::topic) fn roll_back(&mut self, id: &JobId) {
        self.held.set(id, Stage::settling(Change::Rollback, None));
    }

    /// At shutdown: what has not started goes back at once, and what was to be acked first, if that was not sent.
    pub(in crate::context::topic) fn roll_back_waiting(&mut self) {
        let unstarted =
            |stage: &Stage| matches!(stage, Stage::Waiting | Stage::Settling { then_run: true, asked: false, .. });
        for id in self.held.ids(unstarted) {
            self.roll_back(&id);
        }
    }

    /// At the end of the grace: what has not finished is cancelled, and goes back if `rollback`.
    pub(in crate::context::topic) fn cancel_unfinished(&mut self, rollback: bool) {
        for run_id in self.runs.all() {
            self.runs.give_up(run_id, self.parts.topic.timeout);
        }
        let unfinished =
            |stage: &Stage| matches!(stage, Stage::Running(_) | Stage::Beginning | Stage::Exhausting { .. });
        if rollback {
            for id in self.held.ids(unfinished) {
                self.roll_back(&id);
            }
        }
    }
}
