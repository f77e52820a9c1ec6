//! Batch: one run of a handler for many jobs, of a listener that takes batches.
//!
//! A batch has the jobs that wait when a permit is free, up to a count and a number of bytes; it waits for nothing to fill up. It
//! has one permit, one timeout and one place in the process, and each of its jobs keeps its token, its attempts and its outcome:
//! the store does not know of batches. A job that was in a crash runs as a batch of one, so that a batch that took its process down
//! is split, and the next crash tells more (rule 19).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::batch_task::{BatchReport, BatchWork};
use super::begin::{Begin, RunId};
use super::run_jobs::{RunJob, RunJobs};
use super::run_report::{Ended, Failed};
use super::run_task::{PreparedRun, RunTask, Work};
use super::runs::Run;
use super::{HeldJob, Mode, Stage, Topic};
use crate::environment::Entry;
use crate::job::{JobId, Record};
use crate::listener::Delivery;
use crate::listener::erased::HandlerCall;
use crate::store::step::MOST_JOBS;
use crate::telemetry;

/// A batch that is put together.
struct Gathered {
    run_id: RunId,
    cancel: CancellationToken,
    bytes: usize,
    jobs: Vec<RunJob>,
    work: Vec<(Record, Delivery)>,
    failed: Vec<Option<u32>>,
}

impl Topic {
    /// Whether the listener takes batches.
    pub(super) const fn takes_batches(&self) -> bool {
        self.batches.is_some()
    }

    /// How many jobs share a permit at most.
    pub(super) const fn batch_size(&self) -> usize {
        if self.takes_batches() { self.parts.topic.batch } else { 1 }
    }

    /// The bytes of records that wait for a permit, or are in batches that run.
    pub(super) fn bytes_held_up(&self) -> usize {
        self.held.waiting_bytes() + self.runs.batched_bytes()
    }

    /// How many more jobs to claim: as many as fill the batches that can start, in one claim or two, and those that are taken
    /// ahead. While many bytes wait or are in batches: none, or one if this topic runs nothing.
    pub(super) fn wanted_for_batches(&mut self, arriving: usize, now: Duration) -> usize {
        let free = self.permits.granted().saturating_sub(self.handed_over());
        let room = if self.waiting.is_full() {
            usize::from(self.handed_over() == 0)
        } else {
            // With one permit, an ordinary job must be there to run between two quarantined ones.
            let ahead = self.prefetch.ahead(now).max(self.held.quarantined().min(1));
            (free * self.batch_size()).min(MOST_JOBS) + ahead
        };
        let overtaken = self.held.quarantined_waiting().min(MOST_JOBS);
        let waiting = self.held.waiting() - overtaken + arriving;
        let asked = self.budgets.claims.jobs();
        let wanted = room.saturating_sub(waiting).min(asked);
        if waiting > 0 && wanted < asked.min(room / 4) { 0 } else { wanted }
    }

    /// Starts a batch with this job and those that wait behind it.
    pub(super) fn start_batch(&mut self, first: &JobId, now: Duration, entry: Entry) {
        let Some(listener) = self.batches.clone() else { return };
        let mut batch = Gathered {
            run_id: self.runs.next_id(),
            cancel: CancellationToken::new(),
            bytes: 0,
            jobs: Vec::new(),
            work: Vec::new(),
            failed: Vec::new(),
        };
        let goes_alone = self.held.get(first).is_none_or(|job| job.crashes > 0);
        self.gather(first, &mut batch);
        while !goes_alone && let Some(next) = self.next_for(&batch) {
            self.gather(&next, &mut batch);
        }
        let Gathered { run_id, cancel, bytes, jobs, work, failed } = batch;
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, batch = jobs.len(), fence = jobs.first().map(|job| job.token.fence.0)
        );
        telemetry::link(&span, work.iter().map(|(_, delivery)| &*delivery.headers));
        let begin = Arc::<Begin>::default();
        let task = RunTask::new(self.tasks.clone(), run_id, begin.clone(), entry, true);
        let report = Arc::new(BatchReport::new(self.tasks.clone(), run_id, failed));
        let work = Work::Batch(BatchWork { listener, jobs: work, report, cancel: cancel.clone() });
        let (handle, abort) = AbortHandle::new_pair();
        self.starting.push(PreparedRun { task, work, abort, span });
        self.runs.insert(run_id, Run::new(RunJobs::batch(jobs, bytes, cancel), now, begin, handle));
    }

    /// Puts a job into a batch.
    fn gather(&mut self, id: &JobId, batch: &mut Gathered) {
        let Some(job) = self.held.get(id) else { return };
        let cancel = batch.cancel.child_token();
        batch.bytes += job.size();
        batch.failed.push(self.asks_after(job, &HandlerCall::OnDue));
        batch.work.push((job.record.clone(), self.delivery(id, job, cancel.clone())));
        batch.jobs.push(RunJob { id: id.clone(), token: job.token, cancel });
        self.held.set(id, Stage::Running(batch.run_id));
    }

    /// The job that waits longest, if it may join the batch.
    fn next_for(&mut self, batch: &Gathered) -> Option<JobId> {
        let settings = &self.parts.topic;
        if batch.jobs.len() >= settings.batch {
            return None;
        }
        let left = settings.batch_bytes.saturating_sub(batch.bytes);
        let (id, _) = self.held.next_to_start()?;
        let joins = |job: &HeldJob| {
            job.mode == Mode::Due && job.crashes == 0 && job.exhausted_by().is_none() && job.size() <= left
        };
        self.held.get(&id).is_some_and(joins).then_some(id)
    }

    /// A job of a batch has its outcome, and the batch goes on.
    pub(super) fn on_job_end(
        &mut self,
        run_id: RunId,
        place: usize,
        failed: Option<Failed>,
        ended: Ended,
        now: Duration,
    ) {
        let Some(job) = self.runs.take_job(run_id, place) else { return self.report_late(run_id, now) };
        self.prefetch.ended(now);
        if self.held.under(&job.id, job.token).is_some() {
            self.decide(&job.id, failed, ended);
        }
    }

    /// A batch has ended, or `retry_delay` has answered for jobs that timed out together: what follows for each of these jobs.
    pub(super) fn on_batch_end(&mut self, jobs: RunJobs, failed: Option<&Failed>, ended: &Ended, now: Duration) {
        let jobs = jobs.into_list();
        self.report_together(jobs.len(), |topic| {
            for (place, job) in jobs {
                topic.prefetch.ended(now);
                if topic.held.under(&job.id, job.token).is_some() {
                    topic.decide(&job.id, failed.cloned(), ended.for_job(place));
                }
            }
        });
    }
}
