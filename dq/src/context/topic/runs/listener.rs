//! Listener: starts the handler that a job needs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::table::Run;
use super::{Runs, longest_wait};
use crate::context::topic::held::Held;
use crate::context::topic::run::{Begin, PayloadFunction, PreparedRun, RunId, RunJob, RunJobs, RunTask, Work, making};
use crate::context::topic::stage::{HeldJob, Mode, Stage};
use crate::environment::Entry;
use crate::job::{JobId, Token};
use crate::listener::erased::HandlerCall;
use crate::listener::{AckMode, Delivery};
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
    pub(crate) fn start_handlers(&mut self, jobs: &mut Held, room: Room, is_good: bool, now: Duration) {
        let too_long = longest_wait(self.parts.topic.timeout);
        while self.handed_over(jobs) < room.permits + room.ahead
            && let Some((id, _)) = jobs.next_to_start()
        {
            let is_large = jobs.get(&id).is_some_and(|job| job.size() > LARGEST_AHEAD);
            if !is_good || (is_large && self.handed_over(jobs) >= room.permits) {
                return;
            }
            let Some(entry) = self.parts.environment.process().enter(too_long) else { return }; // until the process changes
            self.isolations.ordinary_started();
            self.start_held(jobs, &id, now, entry);
        }
    }

    /// Starts the handler that a held job needs. A job that is acked on claim is acked first.
    pub(crate) fn start_held(&mut self, jobs: &mut Held, id: &JobId, now: Duration, entry: Entry) {
        let Some(job) = jobs.get(id) else { return };
        let call = match (job.exhausted_by(), job.mode) {
            (Some(failure), _) => HandlerCall::FinalRetry(failure),
            (None, Mode::Swept) => HandlerCall::ProcessUnacked,
            (None, Mode::Due) if self.parts.topic.ack == AckMode::OnClaim => {
                jobs.set(id, Stage::Settling { change: Change::Ack, sent: false, then_run: true });
                return jobs.admit(id, entry, None);
            }
            (None, Mode::Due) if self.batches.is_some() => return self.start_batch(jobs, id, now, entry),
            (None, Mode::Due) => HandlerCall::OnDue,
        };
        self.start(jobs, id, call, now, entry, false);
    }

    /// Starts the handler of a job that was acked on claim, unless the topic is `cancelling`.
    pub(crate) fn start_acked(&mut self, jobs: &mut Held, id: &JobId, now: Duration, cancelling: bool) {
        match jobs.take_entry(id) {
            Some(entry) if !self.handlers_gone && !cancelling => {
                self.start(jobs, id, HandlerCall::OnDue, now, entry, true);
            }
            _ => self.parts.report_lost(id, "the node stops", None),
        }
    }

    /// Starts `final_retry`. A job that is alone stays so; another quarantined one waits until it may run in a group. A stopping
    /// node gives back what has to wait.
    pub(crate) fn start_final_retry(&mut self, jobs: &mut Held, id: &JobId, now: Duration, is_stopping: bool) {
        let Some(job) = jobs.get(id) else { return };
        let too_long = longest_wait(self.parts.topic.timeout);
        let entry = match &job.alone {
            Some(alone) => Some(alone.enter(too_long)),
            None if job.is_quarantined() => None,
            None => self.parts.environment.process().enter(too_long),
        };
        match entry {
            Some(entry) => self.start_held(jobs, id, now, entry),
            None if is_stopping => jobs.roll_back(id),
            None => jobs.set(id, Stage::Waiting),
        }
    }

    /// Calls a function that makes the payload of a tick.
    pub(crate) fn make(&mut self, id: JobId, token: Token, function: PayloadFunction) {
        self.asking.push(making(&self.tasks, id, token, function, self.parts.topic.timeout));
    }

    /// What a run of a held job knows of it.
    pub(super) fn delivery(&self, id: &JobId, job: &HeldJob, cancel: CancellationToken) -> Delivery {
        Delivery {
            topic: self.parts.key.topic.clone(),
            id: id.clone(),
            fence: job.token.fence,
            due: job.token.due,
            attempt: u32::from(job.metadata.attempts),
            headers: match job.metadata.headers.as_slice() {
                [] => self.no_headers.clone(),
                headers => headers.into(),
            },
            token: cancel,
        }
    }

    /// How many runs have failed if this call fails, too; `None`: then the listener's `retry_delay` is not called.
    pub(super) fn asks_after(&self, job: &HeldJob, call: &HandlerCall) -> Option<u32> {
        job.failed_after(call).filter(|_| self.tasks.listener.may_have_retry_delay())
    }

    /// Starts a handler for a held job. The end of a `detached` run settles nothing.
    fn start(&mut self, jobs: &mut Held, id: &JobId, call: HandlerCall, now: Duration, entry: Entry, detached: bool) {
        let Some(job) = jobs.get(id) else { return };
        let cancel = CancellationToken::new();
        let delivery = self.delivery(id, job, cancel.clone());
        let (token, record) = (job.token, job.record.clone());
        let failed = self.asks_after(job, &call).filter(|_| !detached);
        let run_id = self.table.next_id();
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, job.id = %id, attempt = delivery.attempt, fence = token.fence.0
        );
        telemetry::link(&span, std::iter::once(&*delivery.headers));
        if !detached {
            jobs.set(id, Stage::Running(run_id));
        }
        let run = RunJobs::One(RunJob { id: id.clone(), token, cancel });
        self.launch(run_id, run, Work::One { call, record, delivery, failed }, span, now, entry, detached);
    }

    /// Makes the task of a run, for the next [`hand_over`](Self::hand_over).
    #[expect(clippy::too_many_arguments, reason = "two kinds of runs share it")]
    pub(super) fn launch(
        &mut self,
        run_id: RunId,
        jobs: RunJobs,
        work: Work,
        span: Span,
        now: Duration,
        entry: Entry,
        detached: bool,
    ) {
        let begin = Arc::<Begin>::default();
        let task = RunTask::new(self.tasks.clone(), run_id, begin.clone(), entry, !detached);
        let (handle, abort) = AbortHandle::new_pair();
        self.starting.push(PreparedRun { task, work, abort, span });
        self.table.insert(run_id, Run { detached, ..Run::new(jobs, now, begin, handle) });
    }
}
