//! Listener: makes the run of the handler that a job needs, or of a batch, hands it to the runners, and takes in how it ends: the handler
//! returns, panics or is dropped. If its time is over first, `timeouts.rs` gives it up.
//!
//! A batch is one run of a handler for many jobs, of a listener that takes batches. It has the jobs that wait when a permit is free, up to
//! a count and a number of bytes; it waits for nothing to fill up. It has one permit, one timeout and one place in the process, and each
//! of its jobs keeps its token, its attempts and its outcome: the store does not know of batches. A job that was in a crash runs as a
//! batch of one, so that a batch that took its process down is split, and the next crash tells more (rule 19).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::table::Run;
use super::{Runs, longest_wait};
use crate::context::topic::moment::Moment;
use crate::context::topic::run::{
    BatchReport, Ended, Failed, PayloadFunction, PreparedRun, RunEnd, RunJob, RunJobs, RunTask, Work, making,
};
use crate::context::topic::slab::{HeldId, RunId};
use crate::context::topic::stage::{HeldJob, Mode, Stage};
use crate::environment::ProcessEntry;
use crate::job::{Cause, JobId, Suspicion, Token};
use crate::listener::{AckMode, Decision, Delivered, HandlerCall, Returned, RunControl};
use crate::store::step::Change;
use crate::telemetry;

/// The largest record of a run that waits in the queue of the runners. So all of them have a megabyte at most.
const LARGEST_AHEAD: usize = 4 << 10;

/// How many runs there is room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) permits: usize,
    /// Of these, how many are in use.
    pub(crate) used: usize,
    /// How many runs may wait in the queue of the runners beside them.
    pub(crate) ahead: usize,
}

impl Runs {
    /// Starts ordinary jobs as long as there is room and the lease `is_good` (rule 21).
    pub(crate) fn start_handlers(&mut self, room: Room, is_good: bool, moment: &mut Moment) {
        let too_long = longest_wait(self.parts.topic.timeout);
        while self.handed_over(&moment.held) < room.permits + room.ahead
            && let Some((id, job)) = moment.held.next_to_start(Suspicion::Ordinary)
        {
            let is_large = job.size() > LARGEST_AHEAD;
            if !is_good || (is_large && self.handed_over(&moment.held) >= room.permits) {
                return;
            }
            let Some(entry) = self.parts.environment.process().enter(too_long) else { return }; // until the process changes
            self.isolations.quarantined_was_last = false;
            self.start_held(id, entry, moment);
        }
    }

    /// Starts the handler that a held job needs. A job that is acked on claim is acked first.
    pub(crate) fn start_held(&mut self, id: HeldId, entry: ProcessEntry, moment: &mut Moment) {
        let Some(job) = moment.held.at(id) else { return };
        let call = match (job.exhausted_by(), job.mode) {
            (Some(failure), _) => HandlerCall::OnExhausted(failure),
            (None, Mode::Swept) => HandlerCall::OnParkTimeout,
            (None, Mode::Due) if self.parts.topic.ack == AckMode::OnClaim => {
                moment.held.set(id, Stage::Settling { change: Change::Ack, then_run: true });
                return moment.held.admit(id, entry, None);
            }
            (None, Mode::Due) if self.batches.is_some() => return self.start_batch(id, entry, moment),
            (None, Mode::Due) => HandlerCall::OnDue,
        };
        self.start(id, call, entry, false, moment);
    }

    /// Starts the handler of a job that was acked on claim, unless the topic is `cancelling`.
    pub(crate) fn start_acked(&mut self, id: HeldId, cancelling: bool, moment: &mut Moment) {
        let Some(name) = moment.held.at(id).map(|job| job.id.clone()) else { return };
        match moment.held.take_entry(id) {
            Some(entry) if !self.handlers_gone && !cancelling => {
                self.start(id, HandlerCall::OnDue, entry, true, moment);
            }
            _ => self.parts.report_lost(&name, "the node stops", None),
        }
    }

    /// Starts `on_exhausted`. A job that is alone stays so; another quarantined one waits until it may run in a group. A stopping
    /// node gives back what has to wait.
    pub(crate) fn start_on_exhausted(&mut self, id: HeldId, is_stopping: bool, moment: &mut Moment) {
        let Some(job) = moment.held.at(id) else { return };
        let too_long = longest_wait(self.parts.topic.timeout);
        let entry = match &job.alone {
            Some(alone) => Some(alone.enter(too_long)),
            None if job.is_quarantined() => None,
            None => self.parts.environment.process().enter(too_long),
        };
        match entry {
            Some(entry) => self.start_held(id, entry, moment),
            None if is_stopping => moment.held.roll_back(id),
            None => moment.held.set(id, Stage::Waiting),
        }
    }

    /// Calls a function that makes the payload of a tick.
    pub(crate) fn make(&mut self, id: JobId, token: Token, function: PayloadFunction) {
        self.asking.push(making(&self.tasks, id, token, function, self.parts.topic.timeout));
    }

    /// What a run of a held job knows of it.
    fn delivery(&self, job: &HeldJob, run: Arc<RunControl>) -> Delivered {
        Delivered {
            topic: self.parts.key.topic.clone(),
            id: job.id.clone(),
            fence: job.token.fence,
            due: job.token.due,
            attempt: u32::from(job.metadata.attempts),
            headers: job.metadata.headers.clone(),
            state: job.metadata.state.clone(),
            is_acked: false,
            notes: Some(self.tasks.clone()),
            run,
        }
    }

    /// How many runs have failed if this call fails, too; `None`: then the listener's `retry_delay` is not called.
    pub(super) fn asks_after(&self, job: &HeldJob, call: &HandlerCall) -> Option<u32> {
        let asks = !matches!(call, HandlerCall::OnExhausted(_)) && job.own_policy().is_none();
        (asks && self.tasks.listener.may_have_retry_delay()).then(|| u32::from(job.metadata.attempts) + 1)
    }

    /// Starts a handler for a held job. The end of a `detached` run settles nothing.
    fn start(&mut self, id: HeldId, call: HandlerCall, entry: ProcessEntry, detached: bool, moment: &mut Moment) {
        let Some(job) = moment.held.get(id) else { return };
        let control = Arc::<RunControl>::default();
        let delivery = Delivered { is_acked: detached, ..self.delivery(job, control.clone()) };
        let failed = self.asks_after(job, &call).filter(|_| !detached);
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, job.id = %job.id, attempt = delivery.attempt, fence = job.token.fence.0
        );
        telemetry::link(&span, std::iter::once(&delivery.headers[..]));
        let work = Work::One { call, record: job.record.clone(), delivery, failed };
        let jobs = RunJobs::One(RunJob { id: job.id.clone(), held: id, control });
        let run_id = self.table.next_id();
        if !detached {
            moment.held.set(id, Stage::Running(run_id));
        }
        let (run, task) = self.new_run(run_id, jobs, entry, !detached, moment.now);
        self.table.insert(run_id, Run { detached, ..run });
        self.starting.push(PreparedRun { task, work, span });
    }

    /// Starts a batch with this job and those that wait behind it.
    fn start_batch(&mut self, first: HeldId, entry: ProcessEntry, moment: &mut Moment) {
        let (Some(listener), held) = (self.batches.clone(), &mut moment.held) else { return };
        let settings = &self.parts.topic;
        let (run_id, control, mut bytes) = (self.table.next_id(), Arc::<RunControl>::default(), 0);
        let (mut jobs, mut work, mut failed, mut fence) = (Vec::new(), Vec::new(), Vec::new(), None);
        let mut next = Some(first);
        while let Some(id) = next {
            held.at(id);
            let Some(job) = held.get(id) else { break };
            let goes_alone = job.crashes > 0 || held.defects.accuses(&job.id);
            let control = RunControl::of_batch(&control);
            fence = fence.or(Some(job.token.fence.0));
            bytes += job.size();
            failed.push(self.asks_after(job, &HandlerCall::OnDue));
            work.push((job.record.clone(), self.delivery(job, control.clone())));
            jobs.push(RunJob { id: job.id.clone(), held: id, control });
            held.set(id, Stage::Running(run_id));
            let has_room = !goes_alone && jobs.len() < settings.batch_size;
            let waiting = has_room.then(|| held.next_to_start(Suspicion::Ordinary)).flatten().map(|(id, _)| id);
            next = waiting.filter(|id| {
                held.get(*id).is_some_and(|job| {
                    let is_small = job.size() <= settings.batch_bytes.saturating_sub(bytes);
                    let may_join = job.crashes == 0 && !held.defects.accuses(&job.id);
                    job.mode == Mode::Due && may_join && job.exhausted_by().is_none() && is_small
                })
            });
        }
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, batch = jobs.len(), fence
        );
        telemetry::link(&span, work.iter().map(|(_, delivery)| &delivery.headers[..]));
        let report = Arc::new(BatchReport::new(self.tasks.clone(), run_id, failed));
        let work = Work::Batch { listener, jobs: work, report };
        let jobs = RunJobs::batch(jobs, bytes, control);
        let (run, task) = self.new_run(run_id, jobs, entry, true, moment.now);
        self.table.insert(run_id, run);
        self.starting.push(PreparedRun { task, work, span });
    }

    /// A run of these jobs, and its task.
    pub(super) fn new_run(
        &self,
        run_id: RunId,
        jobs: RunJobs,
        entry: ProcessEntry,
        needs_lease: bool,
        now: Duration,
    ) -> (Run, RunTask) {
        let task = RunTask::new(self.tasks.clone(), run_id, jobs.control().clone(), entry, needs_lease);
        (Run::new(jobs, now, self.parts.topic.slow_warning), task)
    }

    /// Takes all new runs, in one piece: each crossing to the user's runtime wakes a thread, which costs more than a start.
    /// At most `permits` handlers run at a time.
    pub(crate) fn hand_over(&mut self, permits: usize) -> Vec<BoxFuture<'static, ()>> {
        let mut tasks = std::mem::take(&mut self.asking);
        if !self.starting.is_empty() || self.runners.queued() > 0 {
            tasks.extend(self.runners.hand_over(&mut self.starting, permits));
        }
        tasks
    }

    /// A job of a batch has its outcome, and the batch continues.
    pub(crate) fn on_job_end(
        &mut self,
        run: RunId,
        place: usize,
        failed: Option<Failed>,
        ended: Ended,
        now: Duration,
    ) -> Option<RunEnd> {
        let Some(job) = self.table.take_job(run, place) else {
            self.report_late(run, now);
            return None;
        };
        Some(RunEnd { jobs: RunJobs::One(job), together: 1, failed, ended })
    }

    /// The task of a run has ended. `None`: the run was taken back or given up before.
    pub(crate) fn on_run_end(&mut self, run_id: RunId, ended: Ended, moment: &mut Moment) -> Option<RunEnd> {
        let dropped = matches!(ended, Ended::Dropped);
        let Some(mut run) = self.table.remove(run_id) else {
            if self.table.taken_back_ended(run_id) {
                if dropped {
                    self.on_handlers_gone(moment);
                } else {
                    self.on_began(moment.now, moment);
                }
                return None;
            }
            if !dropped && !matches!(ended, Ended::Asked(_) | Ended::AskedEach(_)) {
                self.report_late(run_id, moment.now);
            }
            self.table.abandoned_returned(run_id);
            return None;
        };
        if dropped {
            self.on_handlers_gone(moment);
        } else {
            let began = run.began_at().unwrap_or(moment.now);
            self.parts.stats.ran(moment.now.saturating_sub(began));
            self.on_began(began, moment);
        }
        if let (RunJobs::One(job), true) = (&run.jobs, run.detached) {
            self.on_detached_end(&job.id, &ended);
        }
        let failed = run.asking.take().map(|asking| asking.0);
        Some(RunEnd { together: run.jobs.left(), jobs: run.jobs, failed, ended })
    }

    /// The handler of a job that was acked on claim has ended.
    fn on_detached_end(&self, id: &JobId, ended: &Ended) {
        let (failure, cause) = match ended {
            Ended::Returned(Returned::Failed(failure)) => (failure.log_text(), Some(failure.cause)),
            Ended::Panicked(message) => (&**message, Some(Cause::Panic)),
            Ended::Dropped => ("its runtime has shut down", None),
            Ended::Returned(Returned::Keeping(Decision::Ack, _)) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %id, "a job that is acked on claim keeps no result: keep it in a store of your own, or set `ack = \"on_return\"`");
                return;
            }
            Ended::Returned(_) | Ended::Asked(_) | Ended::AskedEach(_) | Ended::TakenBack => return,
        };
        self.parts.report_lost(id, failure, cause);
    }

    /// Logs and counts a handler that returned, or decided a job of its batch, after its run was given up.
    pub(super) fn report_late(&mut self, run: RunId, now: Duration) {
        let Some(late) = self.table.abandoned(run) else { return };
        self.parts.stats.count.late_outcomes.add(1);
        let (topic, id) = (&self.parts.key.topic, late.job.as_ref().map_or("a batch", JobId::as_str));
        match late.blocked_for(now).filter(|_| self.blocked.is_due(now)) {
            Some(beyond) => {
                let beyond = humantime::format_duration(beyond);
                tracing::warn!(%topic, job.id = %id, %beyond, "a handler blocked its thread beyond its timeout, so its job may run twice at a time; its outcome is refused. Put blocking work into `spawn_blocking`");
            }
            None => {
                tracing::info!(%topic, job.id = %id, "a handler returned after dq had given its run up; its outcome is refused");
            }
        }
    }
}
