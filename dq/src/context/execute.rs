//! One job, one handler: starts it on the user's runtime, behind a boundary that no panic passes.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::abortable;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::topic::pipeline::RequestKind;
use super::topic::run_end::{Ended, RunEnd, TellEnd};
use super::topic::{HeldJob, Mode, Run, Stage, Topic, longest_count};
use crate::environment::Runtime;
use crate::job::JobId;
use crate::listener::erased::{Call, Returned};
use crate::listener::{AckMode, Delivery};
use crate::store::step::{Change, Isolate};

pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").into()
}

impl Topic {
    /// Starts what waits, as long as there are permits and the lease is provably good (rule 21).
    pub(super) fn start_handlers(&mut self, now: Duration) -> Option<Duration> {
        while self.permits_used() < self.parts.topic.concurrency && !self.takes_no_more() {
            let isolated = self.held.isolated(now).map(|(id, job, until)| (id.clone(), job.token, job.stage(), until));
            let (id, token) = match isolated {
                Some((id, token, Stage::Waiting, _)) => (id, token), // again, for its `final_retry`
                Some((.., until)) => return Some(until), // until it is confirmed gone it is charged if this node dies
                None => self.held.next_to_start()?,
            };
            if !self.lease.is_good(now) {
                return None;
            }
            if self.pipeline.busy(&[RequestKind::Isolate]) {
                return None; // a begun job is alone
            }
            let timeout = self.parts.topic.timeout;
            if self.runs.has_quarantined() && self.runs.counted(now, timeout).quarantined {
                return self.runs.next_uncounted(now, timeout);
            }
            if !self.held.get(&id).is_some_and(|job| self.is_quarantined(job)) {
                self.start_held(&id, now, false);
                continue;
            }
            // Nothing overtakes a job one crash short of its cap, else it starves; and nothing may be on its way to a handler.
            if self.runs.counted(now, timeout).any {
                return self.runs.next_uncounted(now, timeout);
            }
            if self.held.needing_permits() > self.held.waiting() + self.runs.with_job() {
                return None;
            }
            if !self.pipeline.can_send(RequestKind::Isolate, now) {
                return self.pipeline.pause_end(RequestKind::Isolate, now);
            }
            self.held.isolate(&id, now + longest_count(timeout));
            self.pipeline.isolate(Isolate {
                last_seen: self.pipeline.last_seen,
                lease: self.parts.node.lease,
                id,
                token,
            });
            return None;
        }
        None
    }

    /// Whether the job is one crash short of its cap: it starts by `isolate`, and runs alone.
    pub(super) fn is_quarantined(&self, job: &HeldJob) -> bool {
        job.crashes + 1 >= self.parts.topic.max_crashes
    }

    /// Whether nothing that is claimed now could start soon: a begun job runs alone, or waits until it can.
    pub(super) fn is_held_up(&mut self, now: Duration) -> bool {
        let alone = self.runs.has_quarantined() && self.runs.counted(now, self.parts.topic.timeout).quarantined;
        if alone || self.held.isolated(now).is_some() || self.pipeline.busy(&[RequestKind::Isolate]) {
            return true;
        }
        let next = self.held.next_to_start();
        next.and_then(|(id, _)| self.held.get(&id)).is_some_and(|job| self.is_quarantined(job))
    }

    /// Starts the handler that a held job is for; one that is acked on claim is acked first.
    pub(super) fn start_held(&mut self, id: &JobId, now: Duration, quarantined: bool) {
        let Some(job) = self.held.get(id) else { return };
        let call = match (job.exhausted_by(), job.mode) {
            (Some(failure), _) => Call::FinalRetry(failure),
            (None, Mode::Swept) => Call::ProcessUnacked,
            (None, Mode::Due) if self.parts.topic.ack == AckMode::OnClaim => {
                let stage = Stage::Settling { change: Change::Ack, metadata: None, asked: false, then_run: true };
                return self.held.set(id, stage);
            }
            (None, Mode::Due) => Call::OnDue,
        };
        self.start(id, call, now, quarantined, false);
    }

    /// Starts a handler for a held job.
    pub(super) fn start(&mut self, id: &JobId, call: Call, now: Duration, quarantined: bool, detached: bool) {
        let Some(job) = self.held.get(id) else { return };
        let cancel = CancellationToken::new();
        let delivery = Delivery {
            topic: self.parts.key.topic.clone(),
            id: id.clone(),
            fence: job.token.fence,
            due: job.token.due,
            attempt: u32::from(job.metadata.attempts),
            headers: match job.metadata.headers.as_slice() {
                [] => self.parts.no_headers.clone(),
                headers => headers.into(),
            },
            token: cancel.clone(),
        };
        let (token, record, run_id) = (job.token, job.record.clone(), self.runs.next_id());
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, job.id = %id, attempt = delivery.attempt, fence = token.fence.0
        );
        let tell = TellEnd { run: run_id, ended: Ended::Dropped, ends: self.ends.clone() };
        let handler = Arc::clone(&self.parts.listener).call(call.clone(), record, delivery);
        let task = async move {
            let ended = AssertUnwindSafe(handler).catch_unwind().await;
            tell.end(match ended {
                Ok(returned) => Ended::Returned(returned),
                Err(panic) => Ended::Panicked(format!("the handler panicked: {}", panic_message(&*panic))),
            });
        };
        let (task, abort) = abortable(task.instrument(span));
        self.starting.push(Box::pin(task.map(drop)));
        let deadline = self.parts.topic.timeout.map(|timeout| now + timeout);
        if !detached {
            self.held.set(id, Stage::Running(run_id));
        }
        let run = Run { id: id.clone(), token, call, started: now, deadline, quarantined, detached, cancel, abort };
        self.runs.insert(run_id, run);
    }

    /// Hands the handlers that were started to the user's runtime, all at once.
    pub(super) fn hand_over(&mut self) {
        if !self.starting.is_empty() {
            self.parts.environment.spawn_all(Runtime::Handler, std::mem::take(&mut self.starting));
        }
    }

    /// Gives up the run of a held job, if it has one, and forgets the job.
    pub(super) fn drop_held(&mut self, id: &JobId) {
        self.give_up_run(id);
        self.held.remove(id);
    }

    /// Gives up the run of a held job, if it has one.
    pub(super) fn give_up_run(&mut self, id: &JobId) {
        if let Some(Stage::Running(run_id)) = self.held.get(id).map(HeldJob::stage) {
            self.runs.give_up(*run_id, self.parts.topic.timeout);
        }
    }

    pub(super) fn on_run_end(&mut self, end: RunEnd, now: Duration) {
        let Some(run) = self.runs.remove(end.run) else {
            if let Some(id) = self.runs.abandoned_returned(end.run)
                && !matches!(end.ended, Ended::Dropped)
            {
                tracing::warn!(topic = %self.parts.key, job.id = %id, "a handler returned after it was given up: its outcome is refused");
                self.parts.stats.late_outcome();
            }
            return;
        };
        self.prefetch.ended(now);
        if matches!(end.ended, Ended::Dropped) {
            self.on_handlers_gone(now);
        }
        if run.detached {
            return self.on_detached_end(&run, end.ended);
        }
        if self.held.under(&run.id, run.token).is_some() {
            self.decide(&run.id, &run.call, end.ended);
        }
    }

    /// A handler was dropped that was not given up: its runtime has shut down, and would drop all others too. What has not
    /// started goes back, and others take what is due.
    fn on_handlers_gone(&mut self, now: Duration) {
        if std::mem::replace(&mut self.handlers_gone, true) {
            return;
        }
        tracing::error!(topic = %self.parts.key, "the runtime of the handlers has shut down before dq: nothing is claimed any more");
        self.parts.stats.handlers_gone();
        self.sleep.called_wake(now);
        self.pipeline.wake();
        self.roll_back_waiting();
    }

    fn on_detached_end(&self, run: &Run, ended: Ended) {
        match ended {
            Ended::Returned(Returned::Failed(failure)) => self.lose(&run.id, &failure.to_string()),
            Ended::Panicked(message) => self.lose(&run.id, &message),
            Ended::Dropped => self.lose(&run.id, "its runtime has shut down"),
            Ended::Returned(_) => {}
        }
    }

    /// A job that was acked on claim was not done.
    pub(super) fn lose(&self, id: &JobId, failure: &str) {
        tracing::error!(topic = %self.parts.key, job.id = %id, failure, "failed after its ack on claim: the job is lost");
        self.parts.stats.failed();
    }
}
