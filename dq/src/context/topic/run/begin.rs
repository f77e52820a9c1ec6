//! Begin: a run starts when its task is polled for the first time, not when the topic hands it over.
//!
//! The runtime of the handlers may be busy or blocked for long. So a timeout counts from the first poll, and a run whose task
//! was not polled can still be given back as if it had never been. [`Begin`] decides between the two with one compare-exchange,
//! so exactly one of them wins, and a run on the happy path costs no message.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::time::Duration;

/// How long a run may wait for its first poll. Then its job goes back without an attempt, and the topic claims nothing until
/// the runtime begins handlers again.
pub(crate) const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// The number of a run within its topic's task. Runs are handed over in the order of their numbers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunId(u64);

impl RunId {
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    #[cfg(test)]
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

const NOT_YET: u64 = 0;
const GIVEN_UP: u64 = u64::MAX;

/// Whether and when a run began. Its task and its topic share it.
#[derive(Debug, Default)]
pub(crate) struct Begin(AtomicU64);

impl Begin {
    /// The task is polled for the first time. `false`: the run was given back, so its handler must not start.
    pub(crate) fn begin(&self, now: Duration) -> bool {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let at = nanos.min(GIVEN_UP - 2) + 1; // the time may be zero
        self.0.compare_exchange(NOT_YET, at, AcqRel, Acquire).is_ok()
    }

    /// Keeps the run from beginning. `false`: it has began.
    pub(crate) fn give_back(&self) -> bool {
        self.0.compare_exchange(NOT_YET, GIVEN_UP, AcqRel, Acquire).is_ok()
    }

    /// The topic has given the run up, so it does not want to know how it ends.
    pub(crate) fn give_up(&self) {
        self.0.store(GIVEN_UP, Release);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.0.load(Acquire) == GIVEN_UP
    }

    /// When the run began, to the nanosecond; `None`: it has not, or it was given up.
    pub(crate) fn at(&self) -> Option<Duration> {
        match self.0.load(Acquire) {
            NOT_YET | GIVEN_UP => None,
            at => Some(Duration::from_nanos(at - 1)),
        }
    }
}

/// When the lease ends, for the tasks of runs: a handler starts at the first poll of its task, long after the topic handed it
/// over if the process was paused meanwhile.
#[derive(Debug, Default)]
pub(crate) struct LeaseEnd(AtomicU64);

impl LeaseEnd {
    /// Whether the lease is provably valid.
    pub(crate) fn is_good(&self, now: Duration) -> bool {
        now < Duration::from_nanos(self.0.load(Acquire))
    }

    /// The lease ends then.
    pub(crate) fn set(&self, end: Duration) {
        self.0.store(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX), Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_either_begins_or_is_given_back() {
        let began = Begin::default();
        assert!(began.begin(Duration::from_secs(7)) && !began.give_back());
        assert_eq!(began.at(), Some(Duration::from_secs(7)));
        began.give_up();
        assert!(began.is_given_up() && began.at().is_none());
        let given_back = Begin::default();
        assert!(given_back.give_back() && !given_back.begin(Duration::from_secs(7)));
        assert_eq!(given_back.at(), None);
    }

    #[test]
    fn a_run_may_begin_at_the_start_and_at_the_end_of_the_clock() {
        let (first, last) = (Begin::default(), Begin::default());
        assert!(first.begin(Duration::ZERO) && last.begin(Duration::MAX));
        assert_eq!(first.at(), Some(Duration::ZERO));
        assert!(last.at().is_some() && !last.is_given_up());
    }

    #[test]
    fn of_a_task_and_a_topic_that_decide_at_once_exactly_one_wins() {
        for _ in 0..1_000 {
            let begin = Begin::default();
            let (given_back, begins) = std::thread::scope(|scope| {
                let begins = scope.spawn(|| begin.begin(Duration::from_secs(1)));
                (begin.give_back(), begins.join().unwrap())
            });
            assert_ne!(begins, given_back);
        }
    }
}
