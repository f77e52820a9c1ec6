//! The results of a simulation.

use std::collections::BTreeMap;
use std::time::Duration;

use dq::job::{DelayJob, State};

/// What a simulation without a finding did: the result of [`try_run`](super::Simulation::try_run).
///
/// ```
/// use dq_testing::simulate;
///
/// let summary = simulate(|| ()).node(|factory, ()| factory.without_listeners()).seeds(0..3).run();
/// assert_eq!((summary.seeds, summary.jobs, summary.differs), (3, 0, None));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The number of runs, one for each seed.
    pub seeds: u64,
    /// Jobs that were added.
    pub jobs: u64,
    /// Handlers that were called.
    pub handled: u64,
    /// Faults that happened.
    pub faults: u64,
    /// The simulated time of all runs.
    pub simulated: Duration,
    /// The real time of all runs.
    pub took: Duration,
    /// How a second run of the first seed differed; `None` if it was the same, line by line. A run that differs cannot be
    /// replayed: see "The same again" in `docs/guide/testing.md`.
    pub differs: Option<String>,
}

/// Where the jobs are at the end of a run, for [`check`](super::Simulation::check).
///
/// ```
/// use dq_testing::Ended;
///
/// fn nothing_is_dead(ended: &Ended) -> bool {
///     ended.of("charge", dq::job::State::Dead).is_empty()
/// }
/// assert!(nothing_is_dead(&Ended::default()));
/// ```
#[derive(Debug, Default)]
pub struct Ended {
    pub(super) jobs: BTreeMap<(String, State), Vec<String>>,
}

impl Ended {
    /// The ids of the DEAD jobs of this type, in order.
    pub fn dead<J: DelayJob>(&self) -> &[String] {
        self.of(J::TOPIC, State::Dead)
    }

    /// The ids of the UNACKED (parked) jobs of this type, in order.
    pub fn unacked<J: DelayJob>(&self) -> &[String] {
        self.of(J::TOPIC, State::Unacked)
    }

    /// The ids of the jobs of a topic in a state, in order. RUNNING is always empty.
    pub fn of(&self, topic: &str, state: State) -> &[String] {
        self.jobs.get(&(topic.to_owned(), state)).map_or(&[], Vec::as_slice)
    }
}
