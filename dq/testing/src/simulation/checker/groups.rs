//! The groups of a topic, as the checker knows them (rules 4 and 29).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dq::job::JobId;
use dq::store::Rate;
use dq::time::Timestamp;

/// When the last jobs were claimed under a rate, in µs: as many as may be within a period.
#[derive(Debug, Clone, Default)]
pub(super) struct Claimed(VecDeque<u64>);

impl Claimed {
    /// Whether all of them were within the last period.
    pub(super) fn have_spent(&self, rate: Rate, micros: u64) -> bool {
        let first = self.0.len().checked_sub(most(rate)).map(|first| self.0[first]);
        first.is_some_and(|first| micros < first + rate.period().as_micros() as u64)
    }

    /// Another one is claimed.
    pub(super) fn add(&mut self, rate: Rate, micros: u64) {
        self.0.push_back(micros);
        if self.0.len() > most(rate) {
            self.0.pop_front();
        }
    }
}

/// How many jobs may be claimed within a period.
const fn most(rate: Rate) -> usize {
    (rate.jobs() + rate.burst()) as usize
}

/// What the checker knows of the groups of a topic.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// Until when they are paused.
    pub(super) paused: BTreeMap<String, Timestamp>,
    /// When a job took a seat last, for its first run, in µs: what waited then stands at a turn that is no earlier.
    pub(super) served: BTreeMap<String, u64>,
    /// When anything of them changed last, in µs: the first job of a group stands no later than that, or its due time.
    pub(super) touched: BTreeMap<String, u64>,
    /// The same for all of them.
    pub(super) all_touched: u64,
    /// What was claimed of them under the present rate.
    pub(super) claimed: BTreeMap<String, Claimed>,
    /// The jobs that were claimed, as long as they are there: they may have kept their seats.
    pub(super) known: BTreeSet<JobId>,
    /// The largest burst so far.
    pub(super) most_burst: usize,
}

impl Groups {
    /// A group was paused until then, or `None`: resumed.
    pub(super) fn set_pause(&mut self, name: &str, until: Option<Timestamp>, micros: u64) {
        self.touched.insert(name.into(), micros);
        match until {
            Some(until) => drop(self.paused.insert(name.into(), until)),
            None => drop(self.paused.remove(name)),
        }
    }

    /// A limit of groups was set or cleared.
    pub(super) fn set_limit(&mut self, micros: u64) {
        self.all_touched = micros;
        self.claimed.clear();
    }

    /// Whether as many jobs of the group were claimed within the last period as may be.
    pub(super) fn is_spent(&self, name: &str, rate: Rate, micros: u64) -> bool {
        self.claimed.get(name).is_some_and(|claimed| claimed.have_spent(rate, micros))
    }

    pub(super) fn is_paused(&self, name: &str, clock: Timestamp) -> bool {
        self.paused.get(name).is_some_and(|until| *until > clock)
    }
}
