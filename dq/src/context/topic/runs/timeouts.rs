//! Timeouts: runs whose time is over, to begin, to return, or to say when their jobs run again.
//!
//! They are kept here, on dq's own thread, because a handler that blocks its thread cannot stop its own. A run that
//! times out is given up: its token fires, its future is dropped at its next `await`, and the job is settled as timed out. A
//! handler that blocks its thread keeps running, keeps its permit until it returns, and its outcome is refused.
//!
//! The listener's `retry_delay` is the user's code, so it runs on the user's runtime. After a failure the task of the handler
//! calls it. After a timeout that task is gone or blocked, so a task of its own does. The topic waits for the answer for a while,
//! and the job stays in the stage of its run. Then the settings decide.
//!
//! If the user's runtime does not begin the handlers that this topic hands over, because handlers or other tasks block its threads or
//! keep them busy, runs *starve*: what did not begin in time goes back without an attempt, for a node that has time for it. Until the
//! runtime begins a run again, the topic starts and claims nothing, and keeps renewing its lease. The tasks that were taken back
//! tell it: each ends at its first poll.

use std::sync::Arc;
use std::time::Duration;

use super::table::{Check, first_check};
use super::{Runs, longest_wait};
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::run::{BEGINS_WITHIN, Ended, Failed, RunEnd, RunJob, RunJobs};
use crate::context::topic::slab::RunId;
use crate::context::topic::stage::{Mode, Stage};
use crate::job::{Cause, JobId};
use crate::listener::{Failure, HandlerCall, Returned, RunControl};

/// How long `retry_delay` may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

impl Runs {
    /// The handler of a run has failed, and its task calls `retry_delay`.
    pub(crate) fn on_failed(&mut self, run: RunId, failed: Failed, now: Duration) {
        if !self.table.asks(run, failed, now + ANSWERS_WITHIN) {
            self.report_late(run, now);
        }
    }

    /// Gives up every run whose time is over: to begin, to return, or to say when its job runs again.
    pub(crate) fn check(&mut self, moment: &mut Moment) -> Option<Duration> {
        let timeout = self.parts.topic.timeout;
        while let Some((run_id, at)) = self.table.next_check(timeout) {
            if moment.now < at {
                return Some(at);
            }
            match self.table.check(run_id, timeout, moment.now) {
                Check::Nothing => {}
                Check::Starved => match self.runners.room_since().map(|since| since + BEGINS_WITHIN) {
                    Some(end) if end <= moment.now => self.on_starved(run_id, moment),
                    // All permits are in use, or were until just now: the run waits for one.
                    end => {
                        let next = moment.now + first_check(timeout, self.parts.topic.slow_warning);
                        self.table.check_at(run_id, Some(end.map_or(next, |end| end.min(next))));
                    }
                },
                Check::Long => self.on_long(run_id),
                Check::TimedOut => self.on_timeout(run_id, moment),
                Check::Unanswered => self.on_unanswered(run_id, moment),
            }
        }
        None
    }

    /// Warns of a run whose handler takes long, which continues.
    fn on_long(&mut self, run_id: RunId) {
        let after = self.parts.topic.slow_warning.unwrap_or_default();
        let Some(run) = self.table.get_mut(run_id) else { return };
        let (topic, id) = (&self.parts.key.topic, run.jobs.only().map_or("a batch", JobId::as_str));
        let after = humantime::format_duration(after);
        tracing::warn!(%topic, job.id = %id, "a handler has been running for longer than {after} (`slow_warning`)");
    }

    fn on_timeout(&mut self, run_id: RunId, moment: &mut Moment) {
        let timeout = self.parts.topic.timeout.unwrap_or_default();
        let Some(run) = self.table.give_up(run_id) else { return };
        self.table.note_timed_out(run_id, moment.now);
        self.parts.stats.count.timed_out.add(1);
        self.parts.stats.ran(timeout);
        let after = humantime::format_duration(timeout);
        let failure = Failure::new(Cause::Timeout, format!("the handler did not return within {after}"));
        let (together, mut asked, mut others) = (run.jobs.left(), Vec::new(), Vec::new());
        for (_, job) in run.jobs.into_list() {
            if run.detached {
                self.parts.report_lost(&job.id, &failure.message, Some(Cause::Timeout));
            } else if let Some(held) = moment.held.at(job.held) {
                let asks = held.mode == Mode::Due && held.exhausted_by().is_none();
                match self.asks_after(held, &HandlerCall::OnDue).filter(|_| asks) {
                    Some(failed) => asked.push((job, failed)),
                    None => others.push(job),
                }
            }
        }
        let ended = Ended::Returned(Returned::Failed(failure.clone()));
        moment.push(Effect::Decide(RunEnd { jobs: RunJobs::all(others), together, failed: None, ended }));
        self.ask_beside(asked, failure, moment);
    }

    /// Asks `retry_delay` about jobs whose handler has timed out, with the number of failed runs of each.
    fn ask_beside(&mut self, asked: Vec<(RunJob, u32)>, failure: Failure, moment: &mut Moment) {
        let Some(held) = asked.first().and_then(|(job, _)| moment.held.get(job.held)) else { return };
        let too_long = longest_wait(self.parts.topic.timeout);
        let entry = match &held.alone {
            Some(alone) => Some(alone.enter(too_long)),
            None => self.parts.environment.process().enter_unless_alone(too_long),
        };
        let failed_run = Failed { failure: failure.clone(), is_wanted: false };
        let (together, failed) = (asked.len(), asked.iter().map(|(_, failed)| *failed).enumerate().collect());
        let control = Arc::<RunControl>::default();
        let asked = RunJobs::batch(asked.into_iter().map(|(job, _)| job).collect(), 0, control.clone());
        let Some(entry) = entry else {
            // A job of this process runs alone.
            let (failed, ended) = (Some(failed_run), Ended::Dropped);
            return moment.push(Effect::Decide(RunEnd { jobs: asked, together, failed, ended }));
        };
        let run_id = self.table.next_id();
        for job in asked.jobs() {
            moment.held.defects.at(&job.id);
            moment.held.set(job.held, Stage::Running(run_id));
        }
        let (run, task) = self.new_run(run_id, asked, entry, false, moment.now);
        self.table.insert(run_id, run);
        self.table.asks(run_id, failed_run, moment.now + ANSWERS_WITHIN);
        self.asking.push(Box::pin(async move {
            control.until_given_up(task.ask_only(failed, failure)).await.unwrap_or_default();
        }));
    }

    /// `retry_delay` takes too long, or the runtime does not begin to call it.
    fn on_unanswered(&mut self, run_id: RunId, moment: &mut Moment) {
        let asked = self.table.get_mut(run_id).is_some_and(|run| run.began_at().is_some());
        let Some(id) = self.settings_decide(run_id, moment) else { return };
        if !asked {
            return self.begin_starvation(Some(&id), moment.now);
        }
        tracing::warn!(
            topic = %self.parts.key.topic, job.id = %id,
            "`retry_delay` of the listener has not returned within {}, because it blocks; \
             the retry policy of the settings is used instead",
            humantime::format_duration(ANSWERS_WITHIN)
        );
    }

    /// Waits for no `retry_delay` any more: the handlers have ended, and their outcomes count.
    pub(crate) fn settings_decide_all(&mut self, moment: &mut Moment) {
        for run_id in self.table.asking() {
            self.settings_decide(run_id, moment);
        }
    }

    /// Returns the first job of the run, if there is one.
    fn settings_decide(&mut self, run_id: RunId, moment: &mut Moment) -> Option<JobId> {
        let mut run = self.table.give_up(run_id)?;
        let failed = run.asking.take().map(|asking| asking.0);
        let (first, together) = (run.jobs.jobs().next().map(|job| job.id.clone()), run.jobs.left());
        moment.push(Effect::Decide(RunEnd { jobs: run.jobs, together, failed, ended: Ended::Dropped }));
        first
    }

    /// Whether runs starve.
    pub(crate) const fn starve(&self) -> bool {
        self.starving_since.is_some()
    }

    /// A run has waited too long for its first poll. Its job waits again, and goes back as all that wait while runs starve. If it was
    /// acked on claim, the run can only keep waiting.
    fn on_starved(&mut self, run_id: RunId, moment: &mut Moment) {
        let Some(run) = self.table.get_mut(run_id) else { return };
        let (id, is_news) = (run.jobs.only().cloned(), !std::mem::replace(&mut run.starved, true));
        if run.detached {
            self.table.check_at(run_id, Some(moment.now + BEGINS_WITHIN));
        } else if !self.wait_again(run_id, &mut moment.held) {
            return; // it has just begun
        }
        if is_news {
            self.parts.stats.count.starved.add(1);
        }
        self.begin_starvation(id.as_ref(), moment.now);
    }

    /// Runs starve from now on, unless they do already.
    fn begin_starvation(&mut self, id: Option<&JobId>, now: Duration) {
        if self.starve() {
            return;
        }
        self.starving_since = Some(now);
        self.parts.stats.set_starved(true);
        tracing::warn!(
            topic = %self.parts.key.topic, job.id = id.map(tracing::field::display),
            "the runtime of the handlers did not begin a handler within {}: its threads are blocked or too busy. \
             Jobs that did not begin go back without an attempt, and the topic claims none until handlers begin again. \
             Put blocking work into `spawn_blocking`, or lower `concurrency` or `node_concurrency`",
            humantime::format_duration(BEGINS_WITHIN)
        );
    }

    /// The runtime began a run then, or ended one that was taken back.
    pub(super) fn on_began(&mut self, began: Duration, moment: &mut Moment) {
        if self.starving_since.is_some_and(|since| began >= since) {
            self.starving_since = None;
            self.parts.stats.set_starved(false);
            moment.push(Effect::Wake);
            tracing::info!(topic = %self.parts.key.topic, "the runtime of the handlers begins handlers again");
        }
    }
}
