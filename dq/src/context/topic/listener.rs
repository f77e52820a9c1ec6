//! Listener: one run of a job's handler, from its start to the job's outcome.
//!
//! 1. [`start_held`](Topic::start_held) chooses the handler that the job needs, and `start` builds the task that calls it.
//! 2. [`hand_over`](Topic::hand_over) gives all new tasks to the user's runtime.
//! 3. The task ends: [`on_run_end`](Topic::on_run_end). Or its timeout passes first: [`expire_timeouts`](Topic::expire_timeouts).
//! 4. `decide` turns what the handler returned into the next [`Stage`] of the job, mostly an outcome to send.
//!
//! `permits.rs` says when a job may start, `retry.rs` when a failed one runs again; `ack.rs` sends the outcome.
//!
//! Timeouts are kept here, on dq's own thread, because a handler that blocks its thread cannot stop its own. A run that
//! times out is given up: its token fires, its future is dropped at its next `await`, and the job is settled as timed out. A
//! handler that blocks its thread goes on, keeps its permit until it returns, and its outcome is refused.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::abortable;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::runs::{EndReport, Ended, Run, RunEnd};
use super::{Mode, Stage, Topic};
use crate::context::panic_message;
use crate::environment::{Entry, Runtime};
use crate::job::{Cause, JobId};
use crate::listener::erased::{HandlerCall, Returned};
use crate::listener::{AckMode, Decision, Delivery, Failure, UnackedDecision};
use crate::store::step::{Change, RejoinDue};
use crate::time::{LONGEST_DELAY, Timestamp};

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
            (None, Mode::Due) => HandlerCall::OnDue,
        };
        self.start(id, call, now, entry, false);
    }

    /// Starts a handler for a held job. The end of a `detached` run settles nothing.
    pub(super) fn start(&mut self, id: &JobId, call: HandlerCall, now: Duration, entry: Entry, detached: bool) {
        let Some(job) = self.held.get(id) else { return };
        let cancel = CancellationToken::new();
        let delivery = Delivery {
            topic: self.parts.key.topic.clone(),
            id: id.clone(),
            fence: job.token.fence,
            due: job.token.due,
            attempt: u32::from(job.metadata.attempts),
            headers: match job.metadata.headers.as_slice() {
                [] => self.no_headers.clone(),
                headers => headers.into(),
            },
            token: cancel.clone(),
        };
        let (token, record, run_id) = (job.token, job.record.clone(), self.runs.next_id());
        let span = tracing::info_span!(
            parent: None, "dq.run", topic = %self.parts.key.topic, job.id = %id, attempt = delivery.attempt, fence = token.fence.0
        );
        let report = EndReport::new(run_id, self.ends.clone());
        let handler = Arc::clone(&self.parts.listener).call(call, record, delivery);
        let task = async move {
            let ended = AssertUnwindSafe(handler).catch_unwind().await;
            drop(entry); // before the topic looks for a job that may start now
            report.send(match ended {
                Ok(returned) => Ended::Returned(returned),
                Err(panic) => Ended::Panicked(format!("the handler panicked: {}", panic_message(&*panic))),
            });
        };
        let (task, abort) = abortable(task.instrument(span));
        self.starting.push(Box::pin(task.map(drop)));
        if !detached {
            self.held.set(id, Stage::Running(run_id));
        }
        let deadline = self.parts.topic.timeout.map(|timeout| now + timeout);
        let run = Run { id: id.clone(), token, deadline, detached, cancel, abort };
        self.runs.insert(run_id, run);
    }

    /// Hands all new tasks to the user's runtime in one piece: each crossing wakes a thread, which costs more than a start.
    pub(super) fn hand_over(&mut self) {
        if !self.starting.is_empty() {
            self.parts.environment.spawn_all(Runtime::Handler, std::mem::take(&mut self.starting));
        }
    }

    pub(super) fn on_run_end(&mut self, RunEnd { run, ended }: RunEnd, now: Duration) {
        let dropped = matches!(ended, Ended::Dropped);
        let Some(run) = self.runs.remove(run) else {
            if let Some(id) = self.runs.abandoned_returned(run).filter(|_| !dropped) {
                tracing::warn!(topic = %self.parts.key, job.id = %id, "a handler returned after dq had given its run up; its outcome is refused");
                self.parts.stats.late_outcome();
            }
            return;
        };
        self.prefetch.ended(now);
        if dropped {
            self.on_handlers_gone(now);
        }
        if run.detached {
            self.on_detached_end(&run.id, ended);
        } else if self.held.under(&run.id, run.token).is_some() {
            self.decide(&run.id, ended);
        }
    }

    /// Gives up every run whose timeout has passed.
    pub(super) fn expire_timeouts(&mut self, now: Duration) -> Option<Duration> {
        while let Some((run_id, deadline)) = self.runs.first_deadline() {
            if now < deadline {
                return Some(deadline);
            }
            let timeout = self.parts.topic.timeout;
            let Some(run) = self.runs.give_up(run_id) else { continue };
            let after = humantime::format_duration(timeout.unwrap_or_default());
            tracing::warn!(topic = %self.parts.key, job.id = %run.id, "the handler did not return within {after}; its run is given up");
            self.parts.stats.timed_out();
            if !run.detached && self.held.under(&run.id, run.token).is_some() {
                let failure = Failure::new(Cause::Timeout, format!("the handler did not return within {after}"));
                self.decide(&run.id, Ended::Returned(Returned::Failed(failure)));
            }
        }
        None
    }

    /// What follows from the end of a run whose job is still held.
    fn decide(&mut self, id: &JobId, ended: Ended) {
        let failure = match ended {
            Ended::Dropped => return self.roll_back(id),
            Ended::Panicked(message) => Failure::new(Cause::Panic, message),
            Ended::Returned(Returned::Failed(failure)) => failure,
            Ended::Returned(Returned::Decided(decision)) => return self.on_decision(id, decision),
            Ended::Returned(Returned::Unacked(decision)) => return self.on_unacked_decision(id, decision),
            Ended::Returned(Returned::FinalRetried) => return self.held.set(id, Stage::settling(Change::Dead)),
        };
        self.report_failure(id, &failure);
        match self.held.get(id).map(|job| (job.metadata.exhausted, job.mode)) {
            Some((true, _)) => self.held.set(id, Stage::settling(Change::Dead)), // `final_retry` failed
            Some((false, Mode::Swept)) => self.held.set(id, Stage::settling(Change::Park)),
            Some((false, Mode::Due)) => self.on_failure(id, failure),
            None => {}
        }
    }

    fn on_decision(&mut self, id: &JobId, decision: Decision) {
        let change = match decision {
            Decision::Ack => Change::Ack,
            Decision::Rejoin => Change::Rejoin(RejoinDue::AsAdded),
            Decision::RejoinAfter(delay) => Change::Rejoin(RejoinDue::After(delay)),
            Decision::RejoinAt(time) => {
                let at = Timestamp::from(time);
                if at.since(self.parts.environment.wall()) > LONGEST_DELAY {
                    return self
                        .refuse_decision(id, "rejoin_at: the time is further away than ten years, which is the limit");
                }
                Change::Rejoin(RejoinDue::At(at))
            }
            Decision::Park => Change::Park,
            Decision::BadDelay(text) => return self.refuse_decision(id, text),
        };
        self.held.set(id, Stage::settling(change));
    }

    /// A decision that dq cannot carry out is a failure of the handler.
    fn refuse_decision(&mut self, id: &JobId, text: impl Into<String>) {
        let failure = Failure::new(Cause::Error, text);
        self.report_failure(id, &failure);
        self.on_failure(id, failure);
    }

    fn on_unacked_decision(&mut self, id: &JobId, decision: UnackedDecision) {
        match decision {
            UnackedDecision::Drop => self.held.set(id, Stage::settling(Change::Drop)),
            UnackedDecision::Keep => self.held.set(id, Stage::settling(Change::Park)),
            UnackedDecision::Retry => {
                let text = "no outcome of the parked job was reported, and `process_unacked` asked for a retry";
                self.on_failure(id, Failure::new(Cause::Error, text));
            }
        }
    }

    /// Logs and counts a failure. A decoder's text quotes the payload, so it is kept with the job and stays out of the log.
    fn report_failure(&self, id: &JobId, failure: &Failure) {
        let error = match failure.cause {
            Cause::Decode => {
                "the payload does not decode into the type of the listener; `get` the DEAD job for the details"
            }
            _ => failure.message.as_str(),
        };
        tracing::warn!(topic = %self.parts.key, job.id = %id, cause = %failure.cause, error, "the handler failed");
        self.parts.stats.failed();
    }
}
