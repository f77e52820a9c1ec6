//! Decide: what the end of a run means for its job, which moves to its next [`Stage`], mostly an outcome to send; when a failed job
//! runs again, and what happens when no attempt is left.
//!
//! The store learns that a job is exhausted before `final_retry` is called (rule 15). If the node dies in between, the next
//! claim calls `final_retry` again and never `on_due`.

use std::sync::Arc;
use std::time::Duration;

use super::Outcomes;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::run::{Ended, Failed, RunJobs, change, paced, wanted_retry};
use crate::context::topic::slab::HeldId;
use crate::context::topic::stage::{HeldJob, Mode, Stage};
use crate::job::{Cause, JobId, Token};
use crate::listener::Returned;
use crate::listener::{Drafts, Failure, OnTimeout, RetryDelay, UnackedDecision};
use crate::store::RequestKind;
use crate::store::step::{Change, Ending, Exhaust, NoteVerdict};
use crate::time::LONGEST_DELAY;

/// What follows a failure.
#[derive(Debug)]
pub(super) struct Next {
    /// The delay before the next attempt; `None`: there is none.
    pub(super) delay: Option<Duration>,
    /// How many attempts there are in all; `None`: only the listener's `retry_delay` knows.
    pub(super) attempts: Option<u32>,
    /// The handler has given the job up.
    pub(super) is_fatal: bool,
}

impl Next {
    /// How many attempts are left after this failed one; `None`: only `retry_delay` knows.
    pub(super) fn attempts_left(&self, attempt: u16) -> Option<u32> {
        self.delay.map_or(Some(0), |_| self.attempts.map(|of| of.saturating_sub(attempt.into())))
    }
}

/// How many `exhaust` requests may be in flight.
const MOST_EXHAUSTS: usize = 32;

impl Outcomes {
    /// A run has ended, or is given up: decides for each of these jobs that is still held. `failed` is what its task has reported
    /// before. The log has one line for jobs that end `together`.
    pub(crate) fn decide_run(
        &mut self,
        jobs: RunJobs,
        together: usize,
        failed: Option<Failed>,
        ended: Ended,
        held: &mut Held,
    ) {
        if let RunJobs::One(job) = jobs {
            return self.decide(job.held, failed, ended, held);
        }
        self.begin_together(together);
        for (place, job) in jobs.into_list() {
            self.decide(job.held, failed.clone(), ended.for_job(place), held);
        }
        self.report_together();
    }

    /// What follows from the end of a run, if its job is still held. `failed` is what its task has reported before.
    fn decide(&mut self, id: HeldId, failed: Option<Failed>, ended: Ended, held: &mut Held) {
        let Some(job) = held.at(id) else { return };
        let asked = match &ended {
            Ended::Asked(Some(delay)) => delay.clone(),
            Ended::Asked(None) => {
                tracing::warn!(topic = %self.parts.key.topic, job.id = %job.id, "`retry_delay` of the listener panicked; the retry policy of the settings is used instead");
                RetryDelay::BySettings
            }
            _ => RetryDelay::BySettings,
        };
        let (is_final, environment) = (job.metadata.exhausted, &self.parts.environment);
        let (as_added, mut kept) = (job.metadata.delay, None);
        let mut is_wanted = failed.as_ref().is_some_and(|failed| failed.is_wanted);
        let decided = match (failed, ended) {
            (Some(failed), _) => Err(failed.failure),
            (None, Ended::Returned(Returned::Unacked(UnackedDecision::Retry))) => {
                is_wanted = true;
                Err(wanted_retry())
            }
            (None, Ended::Dropped | Ended::TakenBack | Ended::Asked(_) | Ended::AskedEach(_)) => Ok(Change::Rollback),
            (None, Ended::Panicked(message)) => Err(Failure::new(Cause::Panic, message)),
            (None, Ended::Returned(Returned::Failed(failure))) => Err(failure),
            (None, Ended::Returned(Returned::Decided(decision))) => {
                change(&decision, environment).map(|change| paced(change, as_added, environment))
            }
            (None, Ended::Returned(Returned::Keeping(decision, state))) => {
                kept = Some(state);
                change(&decision, environment).map(|change| paced(change, as_added, environment))
            }
            (None, Ended::Returned(Returned::Followed(next, result))) => {
                kept = result;
                Ok(self.followed(Ending::Ack, &next))
            }
            (None, Ended::Returned(Returned::Unacked(UnackedDecision::Drop))) => Ok(Change::Drop),
            (None, Ended::Returned(Returned::Unacked(UnackedDecision::Keep))) => Ok(Change::Park),
            (None, Ended::Returned(Returned::FinalRetried(next))) => {
                Ok(next.map_or(Change::Dead, |next| self.followed(Ending::Dead, &next)))
            }
        };
        let change = match decided {
            Ok(change) => change,
            Err(failure) => {
                if !is_wanted {
                    self.parts.stats.failed(Some(failure.cause));
                }
                if is_wanted || (!is_final && job.mode == Mode::Due) {
                    let next = self.spend_attempt(id, failure, asked, held);
                    if let (Some(next), Some(job)) = (next.filter(|_| !is_wanted), held.get(id)) {
                        self.report_failure(job, &next);
                    }
                    return;
                }
                self.report_other_failure(job, &failure, is_final);
                if is_final { Change::Dead } else { Change::Park }
            }
        };
        match kept {
            Some(result) if *change.alone() == Change::Ack => held.keep_result(id, result),
            Some(state) => drop(held.keep(id, state)),
            None => {}
        }
        held.set(id, Stage::settling(change));
    }

    /// The end of a job, and its follow-ups.
    fn followed(&self, ending: Ending, next: &Drafts) -> Change {
        Change::Then(ending, Arc::new(next.packed(&self.parts.environment)))
    }

    /// The job is retried after its delay or, if no attempt is left, given to `final_retry`. `asked` is what the listener's
    /// `retry_delay` says.
    fn spend_attempt(&self, id: HeldId, mut failure: Failure, asked: RetryDelay, held: &mut Held) -> Option<Next> {
        let job = held.get(id)?;
        let failed = u32::from(job.metadata.attempts) + 1;
        let undecodable = failure.cause == Cause::Decode;
        let next = match undecodable || failure.is_fatal() {
            true => Next { delay: None, attempts: None, is_fatal: failure.is_fatal() },
            false => self.next(job, failed, failure.cause, asked),
        };
        let followed = failure.take_next().map(|next| self.followed(Ending::Dead, &next));
        let metadata = held.metadata_mut(id)?;
        metadata.state = failure.take_state().or_else(|| metadata.state.take());
        metadata.attempts = u16::try_from(failed).unwrap_or(u16::MAX);
        metadata.cause = Some(failure.cause);
        metadata.error = Some(failure.message);
        metadata.exhausted = next.delay.is_none();
        let stage = match next.delay {
            Some(delay) => Stage::settling(Change::Retry(delay)),
            None if undecodable => Stage::settling(Change::Dead),
            // They stand in place of `final_retry`.
            None if followed.is_some() => Stage::settling(followed.unwrap_or(Change::Dead)),
            None => Stage::Exhausting,
        };
        held.set(id, stage);
        Some(next)
    }

    /// What follows. The job's own policy overrides the listener's function, which overrides the settings.
    fn next(&self, job: &HeldJob, failed: u32, cause: Cause, asked: RetryDelay) -> Next {
        let policy = match (job.own_policy(), asked) {
            (Some(policy), _) | (None, RetryDelay::By(policy)) => Ok(policy),
            (None, RetryDelay::BySettings | RetryDelay::NotWritten) => Ok(self.parts.topic.retry.clone()),
            (None, RetryDelay::After(delay)) => Err(Some(delay.min(LONGEST_DELAY))),
            (None, RetryDelay::Exhausted) => Err(None),
        };
        let (delay, attempts) = match policy {
            Ok(policy) => {
                (policy.delay(failed, self.parts.environment.random()), Some(policy.retries().saturating_add(1)))
            }
            Err(delay) => (delay, None),
        };
        let at_once = cause == Cause::Timeout && self.parts.topic.on_timeout == OnTimeout::Immediate;
        Next { delay: if at_once { delay.map(|_| Duration::ZERO) } else { delay }, attempts, is_fatal: false }
    }

    /// Sends an `exhaust` for each exhausted job, several in flight at a time, so that a topic whose jobs all fail does not
    /// wait for a round trip per job.
    pub(crate) fn exhaust(&mut self, moment: &mut Moment) -> Option<Duration> {
        while moment.can_send_beside(RequestKind::Exhaust, MOST_EXHAUSTS) {
            let Some((id, token, metadata)) = moment.held.next_to_exhaust() else { break };
            let (last_seen, lease) = (moment.flight.last_seen(), self.parts.node.lease);
            moment.send(Exhaust { last_seen, lease, id, token, metadata });
        }
        moment.pause_end(RequestKind::Exhaust)
    }

    /// The store has noted that no attempt is left. Unless `final_retry` `may_start`, the job goes back.
    pub(crate) fn on_exhausted(
        &mut self,
        id: &JobId,
        token: Token,
        note: &NoteVerdict,
        may_start: bool,
        moment: &mut Moment,
    ) {
        let Some(id) = moment.held.under(id, token) else { return };
        if !moment.held.at(id).is_some_and(|job| job.stage == Stage::Exhausting) {
            return;
        }
        match note {
            NoteVerdict::Stale => moment.held.remove(id),
            NoteVerdict::Done if may_start => moment.push(Effect::FinalRetry(id)),
            NoteVerdict::Done | NoteVerdict::Ended | NoteVerdict::Cancelled => moment.held.roll_back(id),
        }
    }
}
