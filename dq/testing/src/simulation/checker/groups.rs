//! The groups of a topic, as the checker knows them (rules 4 and 29).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dq::job::JobId;
use dq::store::Rate;
use dq::time::Timestamp;

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
    /// When the last jobs were claimed under the present rate, in µs.
    pub(super) claimed: BTreeMap<String, VecDeque<u64>>,
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
    pub(super) fn is_spent(&self, name: &str, (most, period): (usize, u64), micros: u64) -> bool {
        let claimed = self.claimed.get(name).filter(|claimed| claimed.len() >= most);
        claimed.is_some_and(|claimed| micros < claimed[claimed.len() - most] + period)
    }

    pub(super) fn is_paused(&self, name: &str, clock: Timestamp) -> bool {
        self.paused.get(name).is_some_and(|until| *until > clock)
    }
}

/// How many jobs may be claimed within a period, and that in µs.
pub(super) const fn per(rate: Rate) -> (usize, u64) {
    ((rate.jobs() + rate.burst()) as usize, rate.period().as_micros() as u64)
}
