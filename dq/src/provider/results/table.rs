//! The jobs of a topic for whose results callers wait, and when to look at each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::error::FailureReason;
use super::super::no_result::NoResult;
use crate::job::{Cause, JobId, JobState, KeptState, Metadata, State};
use crate::store::{StoreError, Stored, Transition};

/// The pause before the second look at a job that has not ended, and the longest pause: each is twice the last. Looks repair lost moves only.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// What a caller gets: the result, or why there is none; an error if the store could not be asked.
pub(super) type Ended = Result<Result<KeptState, NoResult>, FailureReason>;

/// A caller who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) since: Duration,
    pub(super) until: Duration,
    pub(super) answer: oneshot::Sender<Ended>,
    /// A query has left since the caller came. An earlier one may not know what the caller has done before.
    pub(super) is_asked: bool,
}

impl Waiter {
    fn answer(self, ended: Ended) {
        // This fails only if the caller has dropped the future.
        let _ = self.answer.send(ended);
    }
}

/// A job for which callers wait.
#[derive(Debug)]
struct Awaited {
    waiters: Vec<Waiter>,
    /// When to look at it next.
    next: Duration,
    /// The pause after the next look.
    pause: Duration,
    /// It was there while a caller waited.
    was_there: bool,
    /// What a move has said about its end.
    end: Option<NoResult>,
    /// A query is in flight; a move that comes meanwhile may be younger.
    asked: bool,
    /// A move has come since the last look left.
    has_news: bool,
}

/// The jobs of a topic for which callers wait.
#[derive(Debug, Default)]
pub(super) struct Table {
    jobs: BTreeMap<JobId, Awaited>,
    /// When to look at which job: each that is not looked at just now.
    times: BTreeSet<(Duration, JobId)>,
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// A caller waits for this job, which is to be looked at then.
    pub(super) fn wait(&mut self, id: &JobId, waiter: Waiter, look: Duration) {
        let job = self.jobs.entry(id.clone()).or_insert_with(|| Awaited {
            waiters: Vec::new(),
            next: Duration::MAX,
            pause: PAUSES.0,
            was_there: false,
            end: None,
            asked: false,
            has_news: false,
        });
        job.waiters.push(waiter);
        self.look_by(id, look);
    }

    /// A caller waits no longer.
    pub(super) fn leave(&mut self, id: &JobId, number: u64) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.waiters.retain(|waiter| waiter.number != number);
        if job.waiters.is_empty() {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &JobId) -> Option<Awaited> {
        let job = self.jobs.remove(id)?;
        self.times.remove(&(job.next, id.clone()));
        Some(job)
    }

    /// Looks at the job at this time, or when it would have been looked at before.
    fn look_by(&mut self, id: &JobId, at: Duration) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let until = job.waiters.iter().map(|waiter| waiter.until).min();
        let next = job.next.min(at).min(until.unwrap_or(Duration::MAX));
        self.times.remove(&(job.next, id.clone()));
        job.next = next;
        if !job.asked {
            self.times.insert((next, id.clone()));
        }
    }

    /// Looks at all jobs by this time: moves may have been lost.
    pub(super) fn look_at_all(&mut self, at: Duration) {
        let ids: Vec<_> = self.jobs.keys().cloned().collect();
        for id in ids {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.has_news |= job.asked;
            }
            self.look_by(&id, at);
        }
    }

    /// When a job is to be looked at next.
    pub(super) fn next(&self) -> Option<Duration> {
        self.times.first().map(|(at, _)| *at)
    }

    /// The jobs to look at now, at most so many. An answer or a failure follows for each.
    pub(super) fn take_due(&mut self, now: Duration, most: usize) -> Vec<JobId> {
        let mut due = Vec::new();
        while due.len() < most
            && self.next().is_some_and(|at| at <= now)
            && let Some((_, id)) = self.times.pop_first()
        {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            (job.asked, job.has_news, job.next) = (true, false, Duration::MAX);
            job.waiters.iter_mut().for_each(|waiter| waiter.is_asked = true);
            due.push(id);
        }
        due
    }

    /// A move of a job.
    pub(super) fn moved(&mut self, id: &JobId, what: &Transition, now: Duration) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let end = match what {
            Transition::Done { .. } => Some(NoResult::Acked),
            Transition::Deleted { .. } => Some(NoResult::Deleted),
            Transition::Removed | Transition::Dropped | Transition::Published => Some(NoResult::Gone),
            _ => None,
        };
        job.was_there = true;
        job.has_news |= job.asked;
        let is_over = end.is_some() || matches!(what, Transition::Dead { .. });
        if end.is_some() {
            job.end = end;
        }
        if is_over {
            self.look_by(id, now);
        }
    }

    /// The store has answered a query for these jobs, perhaps only for the first of them. It left at `left`.
    pub(super) fn answered(&mut self, asked: &[JobId], found: Vec<Option<Stored>>, left: Duration, now: Duration) {
        let mut found = found.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        for (id, found) in asked.iter().zip(&mut found) {
            let Some(job) = self.jobs.get_mut(id).filter(|job| job.asked) else { continue };
            job.asked = false;
            let has_news = std::mem::take(&mut job.has_news);
            let Some(found) = found else {
                self.look_by(id, now); // there was no room for it in the answer
                continue;
            };
            let place = match ended(job, found) {
                // A job that is not there may have been added since.
                Ok(Err(NoResult::Unknown | NoResult::Gone)) if has_news => {
                    self.look_by(id, now);
                    continue;
                }
                Ok(ended) => {
                    self.end_waits(id, |waiter| waiter.is_asked, |_| Ok(ended.clone()));
                    self.look_by(id, now); // for callers who have come since
                    continue;
                }
                Err(place) => place,
            };
            job.was_there = true;
            let pause = job.pause;
            job.pause = (pause * 2).min(PAUSES.1);
            if !has_news {
                job.end = None;
            }
            let time_over = |waited| Ok(Err(NoResult::TimeOver { waited, place: place.clone() }));
            self.end_waits(id, |waiter| waiter.until <= left, time_over);
            self.look_by(id, if has_news { now } else { now + pause });
        }
    }

    /// The store has not answered a query for these jobs.
    pub(super) fn failed(&mut self, asked: &[JobId], error: StoreError, left: Duration, now: Duration) {
        let error = Arc::new(error);
        for id in asked {
            let Some(job) = self.jobs.get_mut(id).filter(|job| job.asked) else { continue };
            job.asked = false;
            let pause = job.pause;
            job.pause = (pause * 2).min(PAUSES.1);
            self.end_waits(id, |waiter| waiter.until <= left, |_| Err(FailureReason::Store(Arc::clone(&error))));
            self.look_by(id, now + pause);
        }
    }

    /// Answers those callers of a job, with how long they wanted to wait.
    fn end_waits(&mut self, id: &JobId, which: impl Fn(&Waiter) -> bool, ended: impl Fn(Duration) -> Ended) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let (over, others): (Vec<_>, Vec<_>) = std::mem::take(&mut job.waiters).into_iter().partition(which);
        job.waiters = others;
        let has_no_other = job.waiters.is_empty();
        for waiter in over {
            let waited = waiter.until.saturating_sub(waiter.since);
            waiter.answer(ended(waited));
        }
        if has_no_other {
            self.forget(id);
        }
    }
}

/// How the job has ended; where it is if it has not.
fn ended(job: &Awaited, found: Option<Stored>) -> Result<Result<KeptState, NoResult>, JobState> {
    let Some(Stored { place, record, .. }) = found else {
        let gone = if job.was_there { NoResult::Gone } else { NoResult::Unknown };
        return Ok(Err(job.end.clone().unwrap_or(gone)));
    };
    let state = place.state();
    if !matches!(state, State::Done | State::Dead) {
        return Err(place);
    }
    Ok(match record.metadata() {
        Err(bad) => Err(NoResult::Unreadable(bad)),
        Ok(Metadata { result: Some(result), .. }) if state == State::Done => Ok(result),
        Ok(_) if state == State::Done => Err(NoResult::Acked),
        // The error of a decoder quotes the payload.
        Ok(Metadata { cause, error, .. }) => {
            Err(NoResult::Dead { cause, error: error.filter(|_| cause != Some(Cause::Decode)) })
        }
    })
}

#[cfg(test)]
mod tests;
