//! Decide: what the end of a run means for its job, which moves to its next [`Stage`], mostly an outcome to send; when a failed job
//! runs again, and what happens when no attempt is left.
//!
//! The store learns that a job is exhausted before `on_exhausted` is called (rule 15). If the node dies in between, the next
//! claim calls `on_exhausted` again and never `on_due`.
//!
//! The log has one line for a failed attempt, when it is known what follows, and one for a batch that fails as a whole. A decoder's text
//! quotes the payload, so it is kept with the job and stays out of the log. `docs/guide/logs.md` has the table of levels.

use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;

use super::Outcomes;
use crate::context::topic::held::Held;
use crate::context::topic::moment::{Effect, Moment};
use crate::context::topic::run::{Ended, Failed, RunEnd, RunJobs, change, wanted_retry};
use crate::context::topic::slab::HeldId;
use crate::context::topic::stage::{HeldJob, Mode, Stage};
use crate::environment::Environment;
use crate::job::{Cause, JobId, Token};
use crate::listener::{Decision, Drafts, Failure, OnTimeout, RetryDelay, Returned, UnackedDecision, log_text};
use crate::store::RequestKind;
use crate::store::step::{Change, Ending, Exhaust, NoteVerdict, RejoinDue};
use crate::time::MAX_DELAY;

/// What follows a failure.
#[derive(Debug)]
struct Next {
    /// The delay before the next attempt; `None`: there is none.
    delay: Option<Duration>,
    /// How many attempts there are in all; `None`: only the listener's `retry_delay` knows.
    attempts: Option<u32>,
    /// The handler has given the job up.
    is_fatal: bool,
}

impl Next {
    /// How many attempts are left after this failed one; `None`: only `retry_delay` knows.
    fn attempts_left(&self, attempt: u16) -> Option<u32> {
        self.delay.map_or(Some(0), |_| self.attempts.map(|of| of.saturating_sub(attempt.into())))
    }
}

/// How many `exhaust` requests may be in flight.
const MAX_EXHAUSTS: usize = 32;

/// The least time until a job runs again that a rejoin would run at once.
const REJOINS_AFTER: Duration = Duration::from_secs(1);

/// What a decision asks of the store. A job without a delay of its own (`as_added`) that would run again at once, for ever, waits for a
/// second.
fn paced(decision: &Decision, as_added: Duration, environment: &Environment) -> Result<Change, Failure> {
    let due = match change(decision, environment)? {
        Change::Rejoin(due) => due,
        other => return Ok(other),
    };
    let wall = environment.wall();
    Ok(Change::Rejoin(match due {
        RejoinDue::AsAdded if as_added.is_zero() => RejoinDue::After(REJOINS_AFTER),
        RejoinDue::After(delay) if delay.is_zero() => RejoinDue::After(REJOINS_AFTER),
        RejoinDue::BackOff(delay) => RejoinDue::BackOff(delay.max(REJOINS_AFTER)),
        // Not `After`: the clock of the store may be behind, and it must not run before the time.
        RejoinDue::At(at) if as_added.is_zero() && at <= wall => RejoinDue::At(wall.after(REJOINS_AFTER)),
        due => due,
    }))
}

/// How many of its jobs the line about a batch names.
const MAX_NAMED: usize = 3;

/// The failures of the jobs of a batch.
#[derive(Debug, Default)]
struct Together {
    jobs: usize,
    /// The first of them.
    named: Vec<JobId>,
    /// The fewest that a job has; `None`: only `retry_delay` knows.
    attempts_left: Option<u32>,
    /// The cause of the first failed job, and its error; `None`: no job has failed.
    cause: Option<Cause>,
    error: String,
}

impl Together {
    /// Notes that a job failed.
    fn add(&mut self, id: &JobId, attempts_left: Option<u32>, cause: Cause, error: &str) {
        if self.cause.is_none() {
            (self.cause, self.error) = (Some(cause), error.to_owned());
        }
        if self.named.len() < MAX_NAMED {
            self.named.push(id.clone());
        }
        self.jobs += 1;
        self.attempts_left = self.attempts_left.into_iter().chain(attempts_left).min();
    }
}

impl Outcomes {
    /// A run has ended, or is given up: decides for each of these jobs that is still held. One that was acked on claim is not. The log has
    /// one line for what jobs share that end together.
    pub(crate) fn decide_run(&self, RunEnd { jobs, together, failed, ended }: RunEnd, held: &mut Held) {
        if let RunJobs::One(job) = jobs {
            return self.decide(job.held, failed, ended, None, held);
        }
        let mut together = (together > 1).then(Together::default);
        for (place, job) in jobs.into_list() {
            self.decide(job.held, failed.clone(), ended.for_job(place), together.as_mut(), held);
        }
        if let Some(together) = together {
            self.report_together(together);
        }
    }

    /// What follows from the end of a run, if its job is still held. `failed` is what its task has reported before.
    fn decide(
        &self,
        id: HeldId,
        failed: Option<Failed>,
        ended: Ended,
        together: Option<&mut Together>,
        held: &mut Held,
    ) {
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
            (None, Ended::Returned(Returned::Decided(decision))) => paced(&decision, as_added, environment),
            (None, Ended::Returned(Returned::Keeping(decision, state))) => {
                kept = Some(state);
                paced(&decision, as_added, environment)
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
                        self.report_failure(job, &next, together);
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

    /// The job is retried after its delay or, if no attempt is left, given to `on_exhausted`. `asked` is what the listener's
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
            // They stand in place of `on_exhausted`.
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
            (None, RetryDelay::After(delay)) => Err(Some(delay)),
            (None, RetryDelay::Exhausted) => Err(None),
        };
        let (delay, attempts) = match policy {
            Ok(policy) => {
                (policy.delay(failed, self.parts.environment.random()), Some(policy.retries().saturating_add(1)))
            }
            Err(delay) => (delay, None),
        };
        let delay = delay.map(|delay| delay.min(MAX_DELAY));
        let at_once = cause == Cause::Timeout && self.parts.topic.on_timeout == OnTimeout::Immediate;
        Next { delay: if at_once { delay.map(|_| Duration::ZERO) } else { delay }, attempts, is_fatal: false }
    }

    /// Sends an `exhaust` for each exhausted job, several in flight at a time, so that a topic whose jobs all fail does not
    /// wait for a round trip per job.
    pub(crate) fn exhaust(&mut self, moment: &mut Moment) -> Option<Duration> {
        while moment.can_send_beside(RequestKind::Exhaust, MAX_EXHAUSTS) {
            let Some((id, token, metadata)) = moment.held.next_to_exhaust() else { break };
            let (last_seen, lease) = (moment.flight.last_seen(), self.parts.node.lease);
            moment.send(Exhaust { last_seen, lease, id, token, metadata });
        }
        moment.pause_end(RequestKind::Exhaust)
    }

    /// The store has noted that no attempt is left. Unless `on_exhausted` `may_start`, the job goes back.
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
            NoteVerdict::Done if may_start => moment.push(Effect::OnExhausted(id)),
            NoteVerdict::Done | NoteVerdict::Ended | NoteVerdict::Cancelled => moment.held.roll_back(id),
        }
    }

    /// Logs in one line what the jobs share that have failed together.
    fn report_together(&self, together: Together) {
        let Together { jobs, named, attempts_left, cause: Some(cause), error } = together else { return };
        let (topic, named) = (&self.parts.key.topic, named.iter().map(JobId::as_str).collect::<Vec<_>>());
        if attempts_left.is_some_and(|left| left <= 1) {
            tracing::warn!(%topic, jobs, first = ?named, attempts_left, %cause, error, "a batch failed, and jobs of it have one attempt left, or none");
        } else {
            tracing::info!(%topic, jobs, first = ?named, attempts_left, %cause, error, "a batch failed, and its jobs are retried");
        }
    }

    /// Logs a failed attempt: the last but one, and what follows it, at WARN. The job has its new metadata. What it shares with
    /// other jobs of its batch is one line for all of them, in [`report_together`](Self::report_together).
    fn report_failure(&self, job: &HeldJob, next: &Next, together: Option<&mut Together>) {
        let (topic, id, fence, metadata) = (&self.parts.key.topic, &job.id, job.token.fence.0, &job.metadata);
        let (attempt, of, cause) = (metadata.attempts, next.attempts, metadata.cause.unwrap_or(Cause::Error));
        let error = log_text(cause, metadata.error.as_deref().unwrap_or_default());
        let retry_in = next.delay.map(format_duration);
        if let Some(together) = together {
            together.add(id, next.attempts_left(attempt), cause, error);
            let retry_in = retry_in.as_ref().map(tracing::field::display);
            tracing::debug!(%topic, job.id = %id, attempt, of, retry_in, fence, %cause, "the handler of the batch failed");
            return;
        }
        let Some(retry_in) = retry_in else {
            if cause == Cause::Decode {
                return; // no handler ran: the line about the DEAD job says all
            }
            if next.is_fatal {
                tracing::warn!(%topic, job.id = %id, attempt, fatal = true, fence, %cause, error, "the handler failed, and gave the job up: `on_exhausted` follows");
            } else {
                tracing::warn!(%topic, job.id = %id, attempt, of, fence, %cause, error, "the handler failed, and no attempt is left: `on_exhausted` follows");
            }
            return;
        };
        if next.attempts_left(attempt).is_some_and(|left| left <= 1) {
            tracing::warn!(%topic, job.id = %id, attempt, of, %retry_in, fence, %cause, error, "the handler failed, and one attempt is left");
        } else {
            tracing::info!(%topic, job.id = %id, attempt, of, %retry_in, fence, %cause, error, "the handler failed, and is retried");
        }
    }

    /// Logs that `on_exhausted` or `on_park_timeout` failed.
    fn report_other_failure(&self, job: &HeldJob, failure: &Failure, is_final: bool) {
        let (topic, id, fence, cause) = (&self.parts.key.topic, &job.id, job.token.fence.0, failure.cause);
        let error = failure.log_text();
        if is_final {
            tracing::warn!(%topic, job.id = %id, fence, %cause, error, "`on_exhausted` failed; the job becomes DEAD all the same");
        } else {
            tracing::info!(%topic, job.id = %id, fence, %cause, error, "`on_park_timeout` failed; the job stays UNACKED for another period");
        }
    }
}
