//! What a simulation leaves behind.

use std::collections::BTreeMap;
use std::time::Duration;

use dq::job::{DelayJob, State};

/// What a simulation without a finding did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Runs: one for each seed.
    pub seeds: u64,
    /// Jobs that were added.
    pub jobs: u64,
    /// Handlers that were called.
    pub handled: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Simulated time, together.
    pub simulated: Duration,
    /// Real time.
    pub took: Duration,
    /// How the first seed differed when it was run again; `None`: it was the same, line by line. What differs cannot be
    /// replayed: see "The same again" in `docs/guide/testing.md`.
    pub differs: Option<String>,
}

/// Where the jobs are at the end of a run.
#[derive(Debug, Default)]
pub struct Ended {
    pub(super) jobs: BTreeMap<(String, State), Vec<String>>,
}

impl Ended {
    /// The ids of the jobs of this type that are in DEAD.
    pub fn dead<J: DelayJob>(&self) -> &[String] {
        self.of(J::TOPIC, State::Dead)
    }

    /// The ids of the jobs of this type that are parked.
    pub fn unacked<J: DelayJob>(&self) -> &[String] {
        self.of(J::TOPIC, State::Unacked)
    }

    /// The ids of the jobs of a topic in a state, in order.
    pub fn of(&self, topic: &str, state: State) -> &[String] {
        self.jobs.get(&(topic.to_owned(), state)).map_or(&[], Vec::as_slice)
    }
}
