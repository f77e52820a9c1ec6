//! The runs of a topic: handlers that execute, and abandoned runs that have not returned; and which of them is checked next, and when.
//!
//! Most runs end long before anything is due, and cost nothing here: a run is first checked a fixed time after it was handed
//! over, so these checks come in the order of the runs. What a check finds may be due later: at a time of its own, because a
//! timeout counts from when the run began.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::context::topic::run::{BEGINS_WITHIN, BatchJobs, Failed, RunJob, RunJobs};
use crate::context::topic::slab::{HeldId, OfRun, RunId, Slab};
use crate::job::JobId;

/// A run that was not given up.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) jobs: RunJobs,
    /// When its task was handed over to the user's runtime.
    pub(super) started: Duration,
    /// Its handler has failed, and its task asks `retry_delay`, until then at most.
    pub(super) asking: Option<Box<(Failed, Duration)>>,
    /// After how long the topic warns of it, if it has not done so yet.
    pub(super) warn_after: Option<Duration>,
    /// When it is checked next, if that is not the first time.
    pub(super) check_at: Option<Duration>,
    /// It has waited too long for its first poll, and the topic has noted that.
    pub(super) starved: bool,
    /// The job was acked on claim: the end of the run settles nothing.
    pub(super) detached: bool,
}

impl Run {
    /// A run whose task is handed over at `started`. The topic warns of it after `warn_after`.
    pub(super) const fn new(jobs: RunJobs, started: Duration, warn_after: Option<Duration>) -> Self {
        let (asking, check_at) = (None, None);
        let (starved, detached) = (false, false);
        Self { jobs, started, asking, warn_after, check_at, starved, detached }
    }

    /// When its task was polled for the first time, from when on its timeout counts.
    pub(super) fn began_at(&self) -> Option<Duration> {
        self.jobs.control().began_at()
    }

    fn give_up(&self) {
        self.jobs.control().give_up();
        self.jobs.control().cancel();
    }
}

/// What is to be done about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing yet.
    Nothing,
    /// It has waited too long for its first poll.
    Starved,
    /// Its handler runs for so long that the topic warns of it. This comes once for a run.
    Long,
    /// Its handler has not returned in time.
    TimedOut,
    /// `retry_delay` has not returned in time.
    Unanswered,
}

/// A run that was given up and has not returned.
#[derive(Debug)]
pub(super) struct Abandoned {
    /// Its job; `None`: a batch.
    pub(super) job: Option<JobId>,
    /// When its timeout was over, if that was why.
    timed_out: Option<Duration>,
}

/// How long after its timeout a handler must return to have blocked its thread: any other is dropped at its next `await`.
const BLOCKED_FOR: Duration = Duration::from_millis(100);

impl Abandoned {
    /// For how long beyond its timeout it has blocked its thread, if it returns now; rounded down to milliseconds.
    pub(super) fn blocked_for(&self, now: Duration) -> Option<Duration> {
        let beyond = now.saturating_sub(self.timed_out?);
        (beyond >= BLOCKED_FOR).then(|| Duration::from_millis(u64::try_from(beyond.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// All runs by their number.
#[derive(Debug, Default)]
pub(crate) struct Table {
    running: Slab<OfRun, Run>,
    /// Runs that were cancelled or timed out and have not returned. They keep their permits, and their outcomes are refused.
    abandoned: BTreeMap<RunId, Abandoned>,
    /// Runs that were taken back before they began. Their tasks end at their first poll, and keep their permits until then.
    taken_back: BTreeSet<RunId>,
    /// Runs whose first checks are to come, in order. One that has ended is skipped.
    unchecked: VecDeque<RunId>,
    /// The checks that are due at times of their own.
    again: BTreeSet<(Duration, RunId)>,
    counts: Counts,
}

/// How many of the running ones are such.
#[derive(Debug, Default)]
struct Counts {
    detached: usize,
    batches: usize,
    /// How many jobs these batches have that are not decided.
    batched: usize,
    /// The bytes of the records of all their jobs.
    batched_bytes: usize,
}

impl Counts {
    /// Counts a run in, or out.
    fn count(&mut self, run: &Run, is_in: bool) {
        let change = |counter: &mut usize, by| *counter = if is_in { *counter + by } else { *counter - by };
        change(&mut self.detached, usize::from(run.detached));
        if let RunJobs::Batch(batch) = &run.jobs {
            change(&mut self.batches, 1);
            change(&mut self.batched, run.jobs.left());
            change(&mut self.batched_bytes, batch.bytes);
        }
    }
}

impl Table {
    /// The number of the next run.
    pub(super) fn next_id(&mut self) -> RunId {
        self.running.next()
    }

    pub(super) fn insert(&mut self, run_id: RunId, run: Run) {
        self.counts.count(&run, true);
        self.running.put(run_id, run);
        if self.unchecked.len() > 2 * self.running.len() {
            self.unchecked.retain(|run_id| self.running.get(*run_id).is_some()); // all behind one that runs for long
        }
        self.unchecked.push_back(run_id);
    }

    /// Whether this run was not given up.
    pub(crate) fn has(&self, run_id: RunId) -> bool {
        self.running.get(run_id).is_some()
    }

    /// Counts the runs again.
    pub(super) fn recount(&mut self) {
        self.counts = Counts::default();
        self.running.iter().for_each(|(_, run)| self.counts.count(run, true));
        self.unchecked = self.all().into();
    }

    /// Removes a run that has returned.
    pub(super) fn remove(&mut self, run_id: RunId) -> Option<Run> {
        let run = self.running.take(run_id)?;
        if let Some(at) = run.check_at {
            self.again.remove(&(at, run_id));
        }
        self.counts.count(&run, false);
        Some(run)
    }

    /// Fires the cancellation token of a job of a run. Whether the handler stops is up to the handler.
    pub(super) fn ask_to_stop(&self, run_id: RunId, id: HeldId) {
        let run = self.running.get(run_id);
        if let Some(job) = run.and_then(|run| run.jobs.jobs().find(|job| job.held == id)) {
            job.control.cancel();
        }
    }

    fn batch_mut(&mut self, run_id: RunId) -> Option<&mut BatchJobs> {
        match &mut self.running.get_mut(run_id)?.jobs {
            RunJobs::One(_) => None,
            RunJobs::Batch(batch) => Some(batch),
        }
    }

    /// Takes the job at this place out of a batch, because it is decided. The batch goes on.
    pub(super) fn take_job(&mut self, run_id: RunId, place: usize) -> Option<RunJob> {
        let job = self.batch_mut(run_id)?.take(place)?;
        self.counts.batched -= 1;
        Some(job)
    }

    /// Takes a job out of a batch, because this node does not hold it any more, and fires its token. The batch goes on, and is
    /// given up with its last job. Returns whether it was in the batch.
    pub(super) fn leave_batch(&mut self, run_id: RunId, id: HeldId) -> bool {
        let Some(place) = self.batch_mut(run_id).and_then(|batch| batch.place(id)) else { return false };
        let Some(job) = self.take_job(run_id, place) else { return false };
        job.control.cancel();
        if self.running.get(run_id).is_some_and(|run| run.jobs.left() == 0) {
            self.give_up(run_id);
        }
        true
    }

    /// Gives a run up. If it has not begun, it never will. Otherwise its token fires, its future is dropped at its next
    /// `await`, and it keeps its permit until it returns.
    pub(super) fn give_up(&mut self, run_id: RunId) -> Option<Run> {
        if let Some(run) = self.take_back(run_id) {
            return Some(run);
        }
        let run = self.remove(run_id)?;
        run.give_up();
        self.abandoned.insert(run_id, Abandoned { job: run.jobs.only().cloned(), timed_out: None });
        Some(run)
    }

    /// Takes a run back that has not begun, so that it never will; `None`: it has begun.
    pub(super) fn take_back(&mut self, run_id: RunId) -> Option<Run> {
        if !self.running.get(run_id)?.jobs.control().take_back() {
            return None;
        }
        self.taken_back.insert(run_id);
        self.remove(run_id)
    }

    /// Takes a run of a handler back that has not begun, as [`take_back`](Self::take_back). Not one that asks `retry_delay`:
    /// its handler has failed.
    pub(super) fn take_back_handler(&mut self, run_id: RunId) -> Option<Run> {
        self.running.get(run_id).filter(|run| run.asking.is_none())?;
        self.take_back(run_id)
    }

    /// Removes a run that was taken back and whose task has ended. Returns whether there was one.
    pub(super) fn taken_back_ended(&mut self, run_id: RunId) -> bool {
        self.taken_back.remove(&run_id)
    }

    pub(super) fn abandoned(&self, run_id: RunId) -> Option<&Abandoned> {
        self.abandoned.get(&run_id)
    }

    /// Notes that an abandoned run has timed out now.
    pub(super) fn note_timed_out(&mut self, run_id: RunId, now: Duration) {
        if let Some(run) = self.abandoned.get_mut(&run_id) {
            run.timed_out = Some(now);
        }
    }

    /// Removes an abandoned run that has returned.
    pub(super) fn abandoned_returned(&mut self, run_id: RunId) {
        self.abandoned.remove(&run_id);
    }

    /// How many runs have a permit and may be executing.
    pub(crate) fn active(&self) -> usize {
        self.running.len() + self.abandoned.len()
    }

    /// How many runs have a permit but no held job.
    pub(crate) fn without_job(&self) -> usize {
        self.abandoned.len() + self.taken_back.len() + self.counts.detached
    }

    /// How many runs are batches, and how many held jobs these have. They share the permit of their batch.
    pub(super) const fn batches(&self) -> (usize, usize) {
        (self.counts.batches, self.counts.batched)
    }

    /// How many bytes the records of the jobs of these batches have.
    pub(crate) const fn batched_bytes(&self) -> usize {
        self.counts.batched_bytes
    }

    /// How many runs were not given up.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// The run that is checked next, and when.
    pub(super) fn next_check(&mut self, timeout: Option<Duration>) -> Option<(RunId, Duration)> {
        let unchecked = loop {
            let Some(run_id) = self.unchecked.front().copied() else { break None };
            match self.running.get(run_id) {
                Some(run) => break Some((run.started + first_check(timeout, run.warn_after), run_id)),
                None => self.unchecked.pop_front(),
            };
        };
        unchecked.into_iter().chain(self.again.first().copied()).min().map(|(at, run_id)| (run_id, at))
    }

    /// What is to be done about a run now. If that is nothing, its next check is set.
    pub(super) fn check(&mut self, run_id: RunId, timeout: Option<Duration>, now: Duration) -> Check {
        if self.unchecked.front() == Some(&run_id) {
            self.unchecked.pop_front();
        }
        let Some(run) = self.running.get_mut(run_id) else { return Check::Nothing };
        let due = match (&run.asking, run.began_at()) {
            (Some(asking), _) => Some((asking.1, Check::Unanswered)),
            (None, Some(began)) => timeout.map(|timeout| (began + timeout, Check::TimedOut)),
            (None, None) => Some((run.started + BEGINS_WITHIN, Check::Starved)),
        };
        let warning = run.warn_after.filter(|_| run.asking.is_none()).zip(run.began_at());
        let warning = warning.map(|(after, began)| (began + after, Check::Long));
        let due = due.into_iter().chain(warning).min_by_key(|(at, _)| *at);
        // A run that has not begun may begin at once, and then times out, or is warned of, no earlier than this.
        let limit = timeout.into_iter().chain(run.warn_after).min().filter(|_| run.began_at().is_none());
        let soonest = limit.map_or(Duration::MAX, |limit| now + limit);
        match due {
            Some((at, check)) if now >= at => {
                if check == Check::Long {
                    run.warn_after = None;
                    self.check_at(run_id, Some(now));
                }
                return check;
            }
            due => self.check_at(run_id, due.map(|(at, _)| at.min(soonest))),
        }
        Check::Nothing
    }

    /// Sets the next check of a run.
    pub(super) fn check_at(&mut self, run_id: RunId, at: Option<Duration>) {
        if let Some(run) = self.running.get_mut(run_id) {
            if let Some(before) = std::mem::replace(&mut run.check_at, at) {
                self.again.remove(&(before, run_id));
            }
            self.again.extend(at.map(|at| (at, run_id)));
        }
    }

    /// Notes that the handler of a run has failed, and that its task asks `retry_delay`. Returns whether there is such a run.
    pub(super) fn asks(&mut self, run_id: RunId, failed: Failed, until: Duration) -> bool {
        let Some(run) = self.running.get_mut(run_id) else { return false };
        run.asking = Some(Box::new((failed, until)));
        self.check_at(run_id, Some(until));
        true
    }

    pub(super) fn get_mut(&mut self, run_id: RunId) -> Option<&mut Run> {
        self.running.get_mut(run_id)
    }

    /// All runs whose handlers have failed and whose tasks ask `retry_delay`.
    pub(super) fn asking(&self) -> Vec<RunId> {
        self.all()
            .into_iter()
            .filter(|run_id| self.running.get(*run_id).is_some_and(|run| run.asking.is_some()))
            .collect()
    }

    /// All runs that were not given up, in order of their start.
    pub(super) fn all(&self) -> Vec<RunId> {
        let mut all: Vec<_> = self.running.iter().map(|(run_id, _)| run_id).collect();
        all.sort_unstable();
        all
    }
}

impl Drop for Table {
    /// A topic is dropped when its node is killed or its task panicked. Its handlers must not outlive it.
    fn drop(&mut self) {
        self.running.iter().for_each(|(_, run)| run.give_up());
    }
}

/// After how long a run that has not begun is checked: by then it may have timed out, be one to warn of, or starve.
pub(super) fn first_check(timeout: Option<Duration>, warn_after: Option<Duration>) -> Duration {
    timeout.into_iter().chain(warn_after).fold(BEGINS_WITHIN, Duration::min)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::topic::slab::OfHeld;
    use crate::listener::{Failure, RunControl};

    const SECOND: Duration = Duration::from_secs(1);
    const TIMEOUT: Option<Duration> = Some(Duration::from_secs(10));

    /// A run that is handed over then; what its task knows of it is returned.
    fn hand_over(runs: &mut Table, started: Duration) -> (RunId, Arc<RunControl>) {
        let (run_id, control) = (runs.next_id(), Arc::<RunControl>::default());
        let (id, held) = (JobId::new(run_id.number().to_string()).unwrap(), Slab::<OfHeld, _>::default().insert(()));
        let jobs = RunJobs::One(RunJob { id, held, control: control.clone() });
        runs.insert(run_id, Run::new(jobs, started, None));
        (run_id, control)
    }

    /// All checks up to `end` with a result, and their times in seconds.
    fn checks(runs: &mut Table, end: Duration) -> Vec<(u64, RunId, Check)> {
        let mut found = Vec::new();
        while let Some((run_id, at)) = runs.next_check(TIMEOUT).filter(|(_, at)| *at <= end) {
            match runs.check(run_id, TIMEOUT, at) {
                Check::Nothing => {}
                check => {
                    found.push((at.as_secs(), run_id, check));
                    runs.give_up(run_id);
                }
            }
        }
        found
    }

    #[test]
    fn a_timeout_counts_from_when_the_run_began_whatever_the_order_of_the_runs() {
        let mut runs = Table::default();
        let started = [0, 0, 1].map(|second| hand_over(&mut runs, second * SECOND));
        for ((_, begin), ms) in started.iter().zip([1_500, 0, 1_000]) {
            assert!(begin.begin(Duration::from_millis(ms)));
        }
        let found = checks(&mut runs, 60 * SECOND);
        let order: Vec<_> = found.iter().map(|(second, run_id, check)| (*second, run_id.number(), *check)).collect();
        assert_eq!(order, [(10, 2, Check::TimedOut), (11, 3, Check::TimedOut), (11, 1, Check::TimedOut)]);
    }

    #[test]
    fn a_run_that_takes_long_is_warned_of_once_before_it_times_out() {
        let mut runs = Table::default();
        let (run_id, begin) = hand_over(&mut runs, Duration::ZERO);
        runs.get_mut(run_id).unwrap().warn_after = Some(SECOND / 2);
        assert!(begin.begin(SECOND));
        let mut found = Vec::new();
        while let Some((_, at)) = runs.next_check(TIMEOUT).filter(|_| found.len() < 2) {
            let check = runs.check(run_id, TIMEOUT, at);
            found.extend((check != Check::Nothing).then_some((at, check)));
        }
        assert_eq!(found, [(SECOND * 3 / 2, Check::Long), (11 * SECOND, Check::TimedOut)]);
    }

    #[test]
    fn a_run_that_does_not_begin_starves_whatever_its_timeout() {
        for timeout in [None, Some(SECOND / 10), TIMEOUT] {
            let mut runs = Table::default();
            let (run_id, begin) = hand_over(&mut runs, SECOND);
            while let Some((_, at)) = runs.next_check(timeout).filter(|(_, at)| *at < SECOND + BEGINS_WITHIN) {
                assert_eq!(runs.check(run_id, timeout, at), Check::Nothing);
            }
            assert_eq!(runs.next_check(timeout), Some((run_id, SECOND + BEGINS_WITHIN)));
            assert_eq!(runs.check(run_id, timeout, SECOND + BEGINS_WITHIN), Check::Starved);
            assert!(runs.take_back(run_id).is_some() && !begin.begin(4 * SECOND));
            assert_eq!((runs.active(), runs.without_job()), (0, 1), "its task keeps the permit");
            assert!(runs.taken_back_ended(run_id));
            assert_eq!((runs.without_job(), runs.next_check(timeout)), (0, None));
        }
    }

    #[test]
    fn only_a_run_that_returns_long_after_its_timeout_has_blocked_its_thread() {
        let mut runs = Table::default();
        let [(timed_out, begin), (cancelled, also)] = [0, 0].map(|second| hand_over(&mut runs, second * SECOND));
        assert!(begin.begin(SECOND) && also.begin(SECOND));
        assert!(runs.give_up(timed_out).is_some() && runs.give_up(cancelled).is_some());
        runs.note_timed_out(timed_out, 11 * SECOND);
        let blocked = |run_id, ms| runs.abandoned(run_id).unwrap().blocked_for(Duration::from_millis(ms));
        assert_eq!([11_000, 11_099].map(|ms| blocked(timed_out, ms)), [None, None], "it may just have returned");
        assert_eq!(blocked(timed_out, 13_500), Some(Duration::from_millis(2_500)));
        assert_eq!(blocked(cancelled, 60_000), None, "a stop, or a lost lease, drops it at its next `await`");
    }

    #[test]
    fn runs_that_ended_behind_one_that_does_not_are_forgotten() {
        let mut runs = Table::default();
        let (long, _) = hand_over(&mut runs, Duration::ZERO);
        for _ in 0..1_000 {
            let (short, _) = hand_over(&mut runs, SECOND);
            assert!(runs.remove(short).is_some() && runs.unchecked.len() < 8);
        }
        assert_eq!(runs.next_check(TIMEOUT), Some((long, BEGINS_WITHIN)));
    }

    #[test]
    fn a_failed_run_waits_for_its_retry_delay_and_not_for_its_timeout() {
        let mut runs = Table::default();
        let [(first, begin), (failed, also)] = [0, 0].map(|second| hand_over(&mut runs, second * SECOND));
        assert!(begin.begin(SECOND) && also.begin(SECOND));
        let failure = Failure::new(crate::job::Cause::Error, "no");
        assert!(runs.asks(failed, Failed { failure, is_wanted: false }, 3 * SECOND));
        assert_eq!(
            checks(&mut runs, 60 * SECOND),
            [(3, failed, Check::Unanswered), (11, first, Check::TimedOut)],
            "the first check of an earlier run is not skipped"
        );
    }
}
