//! Listener: one run of a job's handler, from its start to the job's outcome.
//!
//! 1. [`start_held`](Topic::start_held) chooses the handler that the job needs, and `start` makes its run (`run_task.rs`).
//! 2. [`hand_over`](Topic::hand_over) puts all new runs into the queue of the runners on the user's runtime (`runners.rs`).
//! 3. A runner takes the run: it begins, and its timeout counts. If that takes too long although permits are free, its job goes
//!    back (`starvation.rs`).
//! 4. The run ends: [`on_run_event`](Topic::on_run_event). Or its timeout passes first: [`check_runs`](Topic::check_runs).
//! 5. `decide` turns what the handler returned into the next [`Stage`] of the job, mostly an outcome to send.
//!
//! `permits.rs` says when a job may start, `retry.rs` when a failed one runs again; `ack.rs` sends the outcome.
//!
//! Timeouts are kept here, on dq's own thread, because a handler that blocks its thread cannot stop its own. A run that
//! times out is given up: its token fires, its future is dropped at its next `await`, and the job is settled as timed out. A
//! handler that blocks its thread goes on, keeps its permit until it returns, and its outcome is refused.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::begin::{BEGINS_WITHIN, Begin, RunId};
use super::retry_delay::ANSWERS_WITHIN;
use super::run_jobs::{RunJob, RunJobs};
use super::run_report::{Ended, Failed, RunEvent, change, paced, wanted_retry};
use super::run_task::{PreparedRun, RunTask, Work};
use super::runs::{Check, Run, first_check};
use super::{HeldJob, Mode, Stage, Topic};
use crate::environment::{Entry, Runtime};
use crate::job::{Cause, JobId};
use crate::listener::erased::{HandlerCall, Returned};
use crate::listener::{AckMode, Decision, Delivery, Failure, RetryDelay, UnackedDecision};
use crate::store::step::Change;
use crate::telemetry;

impl Topic {
    /// Starts the handler that a held job needs. A job that is acked on claim is acked first.
    pub(super) fn start_held(&mut self, id: &JobId, now: Duration, entry: Entry) {
        let Some(job) = self.held.get(id) else { return };
        let call = match (job.exhausted_by(), job.mode) {
            (Some(failure), _) => HandlerCall::FinalRetry(failure),
            (None, Mode::Swept) => HandlerCall::ProcessUnacked,
            (None, Mode::Due) if self.parts.topic.ack == AckMode::OnClaim => {
                self.held.set(id, Stage::Settling { change: Change::Ack, sent: false, then_run: true });
                return self.held.admit(id, entry, None);
            }
            (None, Mode::Due) if self.takes_batches() => return self.start_batch(id, now, entry),
            (None, Mode::Due) => HandlerCall::OnDue,
        };
        self.start(id, call, now, entry, false);
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

    /// Starts a handler for a held job. The end of a `detached` run settles nothing.
    pub(super) fn start(&mut self, id: &JobId, call: HandlerCall, now: Duration, entry: Entry, detached: bool) {
        let Some(job) = self.held.get(id) else { return };
        let cancel = CancellationToken::new();
        let delivery = self.delivery(id, job, cancel.clone());
        let (token, record) = (job.token, job.record.clone());
        let asks = self.asks_after(job, &call).filter(|_| !detached);
        let (run_id, begin) = (self.runs.next_id(), Arc::<Begin>::default());
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, job.id = %id, attempt = delivery.attempt, fence = token.fence.0
        );
        telemetry::link(&span, std::iter::once(&*delivery.headers));
        let task = RunTask::new(self.tasks.clone(), run_id, begin.clone(), entry, !detached);
        let (handle, abort) = AbortHandle::new_pair();
        self.starting.push(PreparedRun { task, work: Work::One { call, record, delivery, failed: asks }, abort, span });
        if !detached {
            self.held.set(id, Stage::Running(run_id));
        }
        let jobs = RunJobs::One(RunJob { id: id.clone(), token, cancel });
        let run = Run { detached, ..Run::new(jobs, now, begin, handle) };
        self.runs.insert(run_id, run);
    }

    /// Hands all new runs to the user's runtime in one piece: each crossing wakes a thread, which costs more than a start.
    pub(super) fn hand_over(&mut self) {
        let mut tasks = std::mem::take(&mut self.asking);
        if !self.starting.is_empty() || self.runners.queued() > 0 {
            tasks.extend(self.runners.hand_over(&mut self.starting, self.permits.granted()));
        }
        if !tasks.is_empty() {
            self.parts.environment.spawn_all(Runtime::Handler, tasks);
        }
    }

    pub(super) fn on_run_event(&mut self, event: RunEvent, now: Duration) {
        match event {
            RunEvent::Failed(run, failed) => {
                if !self.runs.asks(run, failed, now + ANSWERS_WITHIN) {
                    self.report_late(run, now);
                }
            }
            RunEvent::JobEnded(run, place, failed, ended) => self.on_job_end(run, place, failed, ended, now),
            RunEvent::Ended(run, ended) => self.on_run_end(run, ended, now),
            RunEvent::Made(id, token, made) => self.on_made(&id, token, made),
        }
    }

    fn on_run_end(&mut self, run_id: RunId, ended: Ended, now: Duration) {
        let dropped = matches!(ended, Ended::Dropped);
        let Some(mut run) = self.runs.remove(run_id) else {
            if self.runs.given_back_ended(run_id) {
                return if dropped { self.on_handlers_gone(now) } else { self.on_began(now) };
            }
            if !dropped && !matches!(ended, Ended::Asked(_) | Ended::AskedEach(_)) {
                self.report_late(run_id, now);
            }
            self.runs.abandoned_returned(run_id);
            return;
        };
        if dropped {
            self.on_handlers_gone(now);
        } else {
            let began = run.begin.at().unwrap_or(now);
            self.parts.stats.ran(now.saturating_sub(began));
            self.on_began(began);
        }
        let failed = run.asking.take().map(|asking| asking.0);
        let job = match run.jobs {
            RunJobs::One(job) => job,
            RunJobs::Batch(_) => return self.on_batch_end(run.jobs, failed.as_ref(), &ended, now),
        };
        self.prefetch.ended(now);
        if run.detached {
            self.on_detached_end(&job.id, ended);
        } else if self.held.under(&job.id, job.token).is_some() {
            self.decide(&job.id, failed, ended);
        }
    }

    /// Logs and counts a handler that returned, or decided a job of its batch, after its run was given up.
    pub(super) fn report_late(&mut self, run: RunId, now: Duration) {
        let Some(late) = self.runs.abandoned(run) else { return };
        self.parts.stats.late_outcome();
        let (topic, id) = (&self.parts.key.topic, late.job.as_ref().map_or("a batch", JobId::as_str));
        match late.blocked_for(now).filter(|_| self.reports.blocked.is_due(now)) {
            Some(beyond) => {
                let beyond = humantime::format_duration(beyond);
                tracing::warn!(%topic, job.id = %id, %beyond, "a handler blocked its thread beyond its timeout, so its job may run twice at a time; its outcome is refused. Put blocking work into `spawn_blocking`");
            }
            None => {
                tracing::info!(%topic, job.id = %id, "a handler returned after dq had given its run up; its outcome is refused");
            }
        }
    }

    /// Gives up every run whose time is over: to begin, to return, or to say when its job runs again.
    pub(super) fn check_runs(&mut self, now: Duration) -> Option<Duration> {
        let timeout = self.parts.topic.timeout;
        while let Some((run_id, at)) = self.runs.next_check(timeout) {
            if now < at {
                return Some(at);
            }
            match self.runs.check(run_id, timeout, now) {
                Check::Nothing => {}
                Check::Starved => match self.runners.room_since().map(|since| since + BEGINS_WITHIN) {
                    Some(end) if end <= now => self.on_starved(run_id, now),
                    // All permits are in use, or were until just now: the run waits for one.
                    end => {
                        let next = now + first_check(timeout);
                        self.runs.check_at(run_id, Some(end.map_or(next, |end| end.min(next))));
                    }
                },
                Check::TimedOut => self.on_timeout(run_id, now),
                Check::Unanswered => self.on_unanswered(run_id, now),
            }
        }
        None
    }

    fn on_timeout(&mut self, run_id: RunId, now: Duration) {
        let timeout = self.parts.topic.timeout;
        let Some(run) = self.runs.give_up(run_id) else { return };
        self.runs.note_timed_out(run_id, now);
        let after = humantime::format_duration(timeout.unwrap_or_default());
        let (detached, jobs) = (run.detached, run.jobs.into_list());
        self.parts.stats.timed_out();
        self.parts.stats.ran(timeout.unwrap_or_default());
        let failure = Failure::new(Cause::Timeout, format!("the handler did not return within {after}"));
        let mut asked = Vec::new();
        self.report_together(jobs.len(), |topic| {
            for (_, job) in jobs {
                if detached {
                    topic.report_lost(&job.id, &failure.message, Some(Cause::Timeout));
                    continue;
                }
                let Some(held) = topic.held.under(&job.id, job.token) else { continue };
                let asks = held.mode == Mode::Due && held.exhausted_by().is_none();
                match topic.asks_after(held, &HandlerCall::OnDue).filter(|_| asks) {
                    Some(failed) => asked.push((job, failed)),
                    None => topic.decide(&job.id, None, Ended::Returned(Returned::Failed(failure.clone()))),
                }
            }
        });
        self.ask_beside(asked, failure, now);
    }

    /// What follows from the end of a run whose job is still held. `failed` is what its task has reported before.
    pub(super) fn decide(&mut self, id: &JobId, failed: Option<Failed>, ended: Ended) {
        let delay = match &ended {
            Ended::Asked(Some(delay)) => delay.clone(),
            Ended::Asked(None) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %id, "`retry_delay` of the listener panicked; the retry policy of the settings is used instead");
                RetryDelay::BySettings
            }
            _ => RetryDelay::BySettings,
        };
        let failure = match (failed, ended) {
            (Some(failed), _) if failed.is_wanted => {
                self.spend_attempt(id, failed.failure, delay);
                return;
            }
            (Some(failed), _) => failed.failure,
            (None, Ended::Dropped | Ended::GivenBack | Ended::Asked(_) | Ended::AskedEach(_)) => {
                return self.roll_back(id);
            }
            (None, Ended::Panicked(message)) => Failure::new(Cause::Panic, message),
            (None, Ended::Returned(Returned::Failed(failure))) => failure,
            (None, Ended::Returned(Returned::Decided(decision))) => return self.on_decision(id, &decision),
            (None, Ended::Returned(Returned::Unacked(decision))) => return self.on_unacked_decision(id, decision),
            (None, Ended::Returned(Returned::FinalRetried)) => return self.held.set(id, Stage::settling(Change::Dead)),
        };
        let Some(job) = self.held.get(id) else { return };
        let (is_final, token) = (job.metadata.exhausted, job.token);
        if !is_final && job.mode == Mode::Due {
            return self.on_failed(id, failure, delay);
        }
        self.report_other_failure(id, token, &failure, is_final);
        self.parts.stats.failed(Some(failure.cause));
        self.held.set(id, Stage::settling(if is_final { Change::Dead } else { Change::Park }));
    }

    fn on_decision(&mut self, id: &JobId, decision: &Decision) {
        let environment = &self.parts.environment;
        match change(decision, environment) {
            Ok(change) => {
                let as_added = self.held.get(id).map_or(Duration::ZERO, |job| job.metadata.delay);
                let change = paced(change, as_added, environment);
                self.held.set(id, Stage::settling(change));
            }
            Err(failure) => {
                self.on_failed(id, failure, RetryDelay::BySettings);
            }
        }
    }

    fn on_unacked_decision(&mut self, id: &JobId, decision: UnackedDecision) {
        match decision {
            UnackedDecision::Drop => self.held.set(id, Stage::settling(Change::Drop)),
            UnackedDecision::Keep => self.held.set(id, Stage::settling(Change::Park)),
            UnackedDecision::Retry => drop(self.spend_attempt(id, wanted_retry(), RetryDelay::BySettings)),
        }
    }
}
