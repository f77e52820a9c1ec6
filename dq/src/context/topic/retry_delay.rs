//! Retry delay: the listener's `retry_delay` is the user's code, so it runs on the user's runtime.
//!
//! After a failure the task of the handler asks it. After a timeout that task is gone or blocked, so a task of its own asks.
//! The topic waits for the answer for a while, and the job stays in the stage of its run. Then the settings decide.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::abortable;
use tokio_util::sync::CancellationToken;

use super::begin::{Begin, RunId};
use super::isolation::longest_wait;
use super::run_jobs::{RunJob, RunJobs};
use super::run_report::{Ended, Failed};
use super::run_task::RunTask;
use super::runs::Run;
use super::{HeldJob, Stage, Topic};
use crate::job::JobId;
use crate::listener::Failure;
use crate::listener::erased::HandlerCall;

/// How long `retry_delay` may take.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

impl Topic {
    /// How many runs have failed if this call fails, too; `None`: then nobody asks `retry_delay`.
    pub(super) fn asks_after(&self, job: &HeldJob, call: &HandlerCall) -> Option<u32> {
        job.failed_after(call).filter(|_| self.tasks.listener.may_have_retry_delay())
    }

    /// Asks `retry_delay` about jobs whose handler has timed out, with the number of failed runs of each.
    pub(super) fn ask_beside(&mut self, jobs: Vec<(RunJob, u32)>, failure: Failure, now: Duration) {
        let Some(held) = jobs.first().and_then(|(job, _)| self.held.get(&job.id)) else { return };
        let too_long = longest_wait(self.parts.topic.timeout);
        let entry = match &held.alone {
            Some(alone) => Some(alone.enter(too_long)),
            None => self.parts.environment.process().enter_unless_alone(too_long),
        };
        let failed_run = Failed { failure: failure.clone(), is_wanted: false };
        let Some(entry) = entry else {
            // A job of this process runs alone.
            return self.report_together(jobs.len(), |topic| {
                jobs.iter().for_each(|(job, _)| topic.decide(&job.id, Some(failed_run.clone()), Ended::Dropped));
            });
        };
        let (run_id, begin) = (self.runs.next_id(), Arc::<Begin>::default());
        let task = RunTask::new(self.tasks.clone(), run_id, begin.clone(), entry, false);
        let failed = jobs.iter().enumerate().map(|(place, (_, failed))| (place, *failed)).collect();
        let (task, abort) = abortable(task.ask_only(failed, failure));
        self.asking.push(Box::pin(task.map(drop)));
        jobs.iter().for_each(|(job, _)| self.held.set(&job.id, Stage::Running(run_id)));
        let jobs = RunJobs::batch(jobs.into_iter().map(|(job, _)| job).collect(), 0, CancellationToken::new());
        self.runs.insert(run_id, Run::new(jobs, now, begin, abort));
        self.runs.asks(run_id, failed_run, now + ANSWERS_WITHIN);
    }

    /// `retry_delay` takes too long, or the runtime does not begin to ask it.
    pub(super) fn on_unanswered(&mut self, run_id: RunId, now: Duration) {
        let asked = self.runs.get_mut(run_id).is_some_and(|run| run.begin.at().is_some());
        let Some(id) = self.settings_decide(run_id) else { return };
        if !asked {
            return self.begin_starvation(Some(&id), now);
        }
        tracing::warn!(
            topic = %self.parts.key.topic, job.id = %id,
            "`retry_delay` of the listener has not returned within {}, because it blocks; \
             the retry policy of the settings is used instead",
            humantime::format_duration(ANSWERS_WITHIN)
        );
    }

    /// Waits for no `retry_delay` any more: the handlers have ended, and their outcomes count.
    pub(super) fn settings_decide_all(&mut self) {
        for run_id in self.runs.asking() {
            self.settings_decide(run_id);
        }
    }

    /// Returns the first job of the run, if there is one.
    fn settings_decide(&mut self, run_id: RunId) -> Option<JobId> {
        let mut run = self.runs.give_up(run_id)?;
        let failed = run.asking.take().map(|asking| asking.0);
        let jobs = run.jobs.into_list();
        self.report_together(jobs.len(), |topic| {
            for (_, job) in &jobs {
                if topic.held.under(&job.id, job.token).is_some() {
                    topic.decide(&job.id, failed.clone(), Ended::Dropped);
                }
            }
        });
        jobs.into_iter().next().map(|(_, job)| job.id)
    }
}
