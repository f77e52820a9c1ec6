//! Batch: one run of a handler for many jobs, of a listener that takes batches.
//!
//! A batch has the jobs that wait when a permit is free, up to a count and a number of bytes; it waits for nothing to fill up. It
//! has one permit, one timeout and one place in the process, and each of its jobs keeps its token, its attempts and its outcome:
//! the store does not know of batches. A job that was in a crash runs as a batch of one, so that a batch that took its process down
//! is split, and the next crash tells more (rule 19).

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Runs;
use crate::context::topic::held::Held;
use crate::context::topic::run::{BatchReport, BatchWork, RunId, RunJob, RunJobs, Work};
use crate::context::topic::stage::{HeldJob, Mode, Stage};
use crate::environment::Entry;
use crate::job::{JobId, Record};
use crate::listener::Delivery;
use crate::listener::erased::HandlerCall;
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

impl Runs {
    /// Starts a batch with this job and those that wait behind it.
    pub(super) fn start_batch(&mut self, jobs: &mut Held, first: &JobId, now: Duration, entry: Entry) {
        let Some(listener) = self.batches.clone() else { return };
        let (run_id, cancel) = (self.table.next_id(), CancellationToken::new());
        let mut batch = Gathered { run_id, cancel, bytes: 0, jobs: Vec::new(), work: Vec::new(), failed: Vec::new() };
        let goes_alone = jobs.get(first).is_none_or(|job| job.crashes > 0);
        self.gather(jobs, first, &mut batch);
        while !goes_alone && let Some(next) = self.next_for(jobs, &batch) {
            self.gather(jobs, &next, &mut batch);
        }
        let Gathered { run_id, cancel, bytes, jobs, work, failed } = batch;
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, batch = jobs.len(), fence = jobs.first().map(|job| job.token.fence.0)
        );
        telemetry::link(&span, work.iter().map(|(_, delivery)| &*delivery.headers));
        let report = Arc::new(BatchReport::new(self.tasks.clone(), run_id, failed));
        let work = Work::Batch(BatchWork { listener, jobs: work, report, cancel: cancel.clone() });
        self.launch(run_id, RunJobs::batch(jobs, bytes, cancel), work, span, now, entry, false);
    }

    /// Puts a job into a batch.
    fn gather(&self, jobs: &mut Held, id: &JobId, batch: &mut Gathered) {
        let Some(job) = jobs.get(id) else { return };
        let cancel = batch.cancel.child_token();
        batch.bytes += job.size();
        batch.failed.push(self.asks_after(job, &HandlerCall::OnDue));
        batch.work.push((job.record.clone(), self.delivery(id, job, cancel.clone())));
        batch.jobs.push(RunJob { id: id.clone(), token: job.token, cancel });
        jobs.set(id, Stage::Running(batch.run_id));
    }

    /// The job that waits longest, if it may join the batch.
    fn next_for(&self, jobs: &mut Held, batch: &Gathered) -> Option<JobId> {
        let settings = &self.parts.topic;
        if batch.jobs.len() >= settings.batch {
            return None;
        }
        let left = settings.batch_bytes.saturating_sub(batch.bytes);
        let (id, _) = jobs.next_to_start()?;
        let joins = |job: &HeldJob| {
            job.mode == Mode::Due && job.crashes == 0 && job.exhausted_by().is_none() && job.size() <= left
        };
        jobs.get(&id).is_some_and(joins).then_some(id)
    }
}
