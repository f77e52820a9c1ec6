//! Ack: turns what handlers decided into outcomes, and sends them, many in one round trip.
//!
//! What arrives while a round trip is under way goes with the next; there is no timer. An outcome is sent until the store
//! has judged it, over any number of links; its token makes a repeat harmless.

use std::time::Duration;

use super::topic::pipeline::RequestKind;
use super::topic::run_end::Ended;
use super::topic::{Stage, Topic};
use crate::job::{Cause, JobId, Token};
use crate::listener::erased::{Call, Returned};
use crate::listener::{Decision, Failure, UnackedDecision};
use crate::store::step::{Change, MOST_JOBS, Outcome, RejoinDue, Settle, Settled, Verdict};
use crate::time::{LONGEST_DELAY, Timestamp};

/// How long an outcome waits that the store could not settle; the others of its batch are settled.
const UNSETTLED_PAUSE: Duration = Duration::from_secs(1);

impl Topic {
    /// What follows from the end of a handler whose job is still held.
    pub(super) fn decide(&mut self, id: &JobId, call: &Call, ended: Ended) {
        let failure = match ended {
            Ended::Dropped => return self.roll_back(id),
            Ended::Panicked(message) => Failure::new(Cause::Panic, message),
            Ended::Returned(Returned::Failed(failure)) => failure,
            Ended::Returned(Returned::Decided(decision)) => return self.on_decision(id, &decision),
            Ended::Returned(Returned::Unacked(decision)) => return self.on_unacked_decision(id, decision),
            Ended::Returned(Returned::FinalRetried) => return self.give_up(id),
        };
        self.tell_failure(id, &failure);
        match call {
            Call::OnDue => self.on_failure(id, &failure),
            Call::FinalRetry(_) => self.give_up(id),
            Call::ProcessUnacked => self.held.set(id, Stage::settling(Change::Park, None)),
        }
    }

    /// Logs and counts a failure. What a decoder says quotes the payload, which is not for logs: it is kept with the job.
    fn tell_failure(&self, id: &JobId, failure: &Failure) {
        let error = match failure.cause {
            Cause::Decode => "the payload is not what the listener takes; the details are kept with the DEAD job",
            _ => failure.message.as_str(),
        };
        tracing::warn!(topic = %self.parts.key, job.id = %id, cause = %failure.cause, error, "the handler failed");
        self.parts.stats.failed();
    }

    fn on_decision(&mut self, id: &JobId, decision: &Decision) {
        let change = match decision {
            Decision::Ack => Change::Ack,
            Decision::Rejoin => Change::Rejoin(RejoinDue::AsAdded),
            Decision::RejoinAfter(delay) => Change::Rejoin(RejoinDue::After(*delay)),
            Decision::RejoinAt(time) => {
                let at = Timestamp::from(*time);
                if at.since(self.parts.environment.wall()) > LONGEST_DELAY {
                    let text = "rejoin_at: the time is further away than ten years, which is the limit";
                    return self.on_failure(id, &Failure::new(Cause::Error, text));
                }
                Change::Rejoin(RejoinDue::At(at))
            }
            Decision::Park => Change::Park,
            Decision::BadDelay(text) => {
                let failure = Failure::new(Cause::Error, text.as_str());
                self.tell_failure(id, &failure);
                return self.on_failure(id, &failure);
            }
        };
        self.held.set(id, Stage::settling(change, None));
    }

    fn on_unacked_decision(&mut self, id: &JobId, decision: UnackedDecision) {
        match decision {
            UnackedDecision::Drop => self.held.set(id, Stage::settling(Change::Drop, None)),
            UnackedDecision::Keep => self.held.set(id, Stage::settling(Change::Park, None)),
            UnackedDecision::Retry => {
                let failure = Failure::new(Cause::Error, "nobody told the outcome of the parked job");
                self.on_failure(id, &failure);
            }
        }
    }

    /// Gives up a job, for the cause its front has.
    fn give_up(&mut self, id: &JobId) {
        let metadata = self.held.get(id).map(|job| job.metadata.clone());
        self.held.set(id, Stage::settling(Change::Dead, metadata));
    }

    /// Sends the outcomes there are.
    pub(super) fn settle(&mut self, now: Duration) -> Option<Duration> {
        while let Some((at, id)) = self.unsettled.front().cloned()
            && at <= now
        {
            self.unsettled.pop_front();
            self.unask_outcome(&id);
        }
        if !self.held.has_outcomes() {
            return self.unsettled.front().map(|(at, _)| *at);
        }
        if !self.pipeline.can_send(RequestKind::Settle, now) {
            return self.pipeline.pause_end(RequestKind::Settle, now);
        }
        let mut outcomes = Vec::new();
        while outcomes.len() < MOST_JOBS
            && let Some((id, token, change, metadata)) = self.held.next_to_settle()
        {
            outcomes.push(Outcome { id, token, change, metadata });
        }
        if !outcomes.is_empty() {
            self.pipeline.settle(Settle { last_seen: self.pipeline.last_seen, lease: self.parts.node.lease, outcomes });
        }
        None
    }

    pub(super) fn on_settled(
        &mut self,
        asked: Vec<(JobId, Token)>,
        settled: Settled,
        sent: Duration,
        named: crate::job::Sequence,
        now: Duration,
    ) {
        let _settle = tracing::debug_span!("dq.settle", topic = %self.parts.key.topic, jobs = asked.len()).entered();
        for ((id, token), verdict) in asked.into_iter().zip(settled.verdicts) {
            if self.held.under(&id, token).is_some() {
                self.on_verdict(&id, token, verdict, now);
            }
        }
        self.on_lease_status(settled.lease_status, sent, named);
    }

    fn on_verdict(&mut self, id: &JobId, token: Token, verdict: Verdict, now: Duration) {
        let attempt = self.held.get(id).map_or(0, |job| job.metadata.attempts);
        tracing::debug!(job.id = %id, attempt, fence = token.fence.0, ?verdict, "settled");
        match verdict {
            Verdict::Done => {
                let Some(Stage::Settling { change, then_run, .. }) = self.held.get(id).map(|job| job.stage().clone())
                else {
                    return;
                };
                self.parts.stats.settled(&change);
                match then_run {
                    true if self.handlers_gone || self.stopping.is_cancelling() => self.lose(id, "the node stops"),
                    true => self.start(id, Call::OnDue, now, false, true),
                    false => {}
                }
                self.held.remove(id);
            }
            Verdict::Stale => {
                tracing::warn!(topic = %self.parts.key, job.id = %id, fence = token.fence.0, "the job is another run's now: this outcome was refused");
                self.parts.stats.stale();
                self.held.remove(id);
            }
            Verdict::Dropped => {
                tracing::warn!(topic = %self.parts.key, job.id = %id, "nothing is kept of this job any more, it is dropped");
                self.parts.stats.dropped(1);
                self.held.remove(id);
            }
            Verdict::Failed(reason) => {
                tracing::error!(topic = %self.parts.key, job.id = %id, reason, "this job cannot be settled, trying again");
                self.unsettled.push_back((now + UNSETTLED_PAUSE, id.clone()));
            }
        }
    }

    fn unask_outcome(&mut self, id: &JobId) {
        let Some(Stage::Settling { change, metadata, then_run, .. }) = self.held.get(id).map(|job| job.stage().clone())
        else {
            return;
        };
        self.held.set(id, Stage::Settling { change, metadata, then_run, asked: false });
    }
}
