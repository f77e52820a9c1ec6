//! Which faults a simulation of a user's program has.

use std::ops::RangeInclusive;

use super::super::profile::Fault;

/// Which faults happen, and how many in one run.
///
/// By default: crashes, pauses, a bad network, outages and clean stops, at most 2 in a run. Few faults in many runs find as
/// much as many faults in few runs, and their accounts are readable. What each method names is on or off for all runs of a
/// [`simulate`](super::simulate); the seed of a run decides what happens when.
///
/// ```
/// use dq_testing::Faults;
///
/// let deploys = Faults::none().stops(true);              // only nodes that stop cleanly
/// let worse = Faults::default().clock_jumps(true).most(4);
/// assert_ne!(deploys, worse);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "give it to `Simulation::faults`"]
pub struct Faults {
    crashes: bool,
    pauses: bool,
    network: bool,
    outages: bool,
    stops: bool,
    clock_jumps: bool,
    fall_backs: bool,
    most: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self::of(true)
    }
}

/// A fault that an occasion can bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedFault {
    /// A fault of the engine; if it is a fault of a node, it hits the node of the occasion.
    Engine(Fault),
    /// A connection fault: one of the next requests of a process is lost, its answer is lost, or it is delayed.
    Connection,
}

impl Faults {
    /// No faults: jobs run on time and once, and a run costs a fraction.
    pub const fn none() -> Self {
        Self::of(false)
    }

    const fn of(on: bool) -> Self {
        let (clock_jumps, fall_backs, most) = (false, false, 2);
        Self { crashes: on, pauses: on, network: on, outages: on, stops: on, clock_jumps, fall_backs, most }
    }

    /// Nodes are killed as by `kill -9`: at any time, at any request to the store, or where a handler resumes after an
    /// `.await`. Another node starts 1 to 6 s later. Default: on.
    pub const fn crashes(mut self, happen: bool) -> Self {
        self.crashes = happen;
        self
    }

    /// Nodes are paused for 1 to 45 s at the same places, then resume. Most lose their lease meanwhile, so a handler goes
    /// on while its job runs elsewhere. Default: on.
    pub const fn pauses(mut self, happen: bool) -> Self {
        self.pauses = happen;
        self
    }

    /// Requests to the store are lost, their answers are lost, or the store executes them up to 45 s late; signals are
    /// lost; everything is slow for a while; a node receives no answers for up to 40 s. Default: on.
    pub const fn network(mut self, happen: bool) -> Self {
        self.network = happen;
        self
    }

    /// The store cannot be reached for 1 to 40 s: requests are lost, refused, reset, or executed afterwards. Default: on.
    pub const fn outages(mut self, happen: bool) -> Self {
        self.outages = happen;
        self
    }

    /// Nodes stop cleanly, as in a deployment, and others start 1 to 8 s later. Default: on.
    pub const fn stops(mut self, happen: bool) -> Self {
        self.stops = happen;
        self
    }

    /// The clocks of the store and of nodes jump by up to 10 minutes in both directions, so jobs may run that much early or
    /// late. Default: off.
    pub const fn clock_jumps(mut self, happen: bool) -> Self {
        self.clock_jumps = happen;
        self
    }

    /// The store falls back to an earlier state, as one that loses its latest writes: jobs may be lost, or run again after
    /// their ack. Your check must allow that. Default: off.
    pub const fn fall_backs(mut self, happen: bool) -> Self {
        self.fall_backs = happen;
        self
    }

    /// The maximum number of faults in one run; each run draws its number, which may be 0. Default: 2. That is fewer than
    /// the default cap of crashes (3), so no job becomes DEAD only because its nodes died. With more faults, a check must
    /// allow DEAD jobs.
    pub const fn most(mut self, faults: u64) -> Self {
        self.most = faults;
        self
    }

    pub(super) const fn range(&self) -> RangeInclusive<u64> {
        1..=self.most
    }

    /// Every fault that can be planned, the likelier ones more than once.
    pub(super) fn planned_faults(&self) -> Vec<PlannedFault> {
        use PlannedFault::{Connection, Engine};
        let (kill, pause, out) = (Engine(Fault::Kill), Engine(Fault::Pause), Engine(Fault::Out));
        let kinds: [(bool, &[PlannedFault]); 7] = [
            (self.crashes, &[kill; 4]),
            (self.pauses, &[pause; 3]),
            (
                self.network,
                &[Connection, Connection, Engine(Fault::Unresponsive), Engine(Fault::Slow), Engine(Fault::Subscribers)],
            ),
            (self.outages, &[out; 2]),
            (self.stops, &[Engine(Fault::Stop)]),
            (self.clock_jumps, &[Engine(Fault::Jump), Engine(Fault::Wall)]),
            (self.fall_backs, &[Engine(Fault::Snap), Engine(Fault::Snap), Engine(Fault::Fall)]),
        ];
        kinds
            .iter()
            .filter(|(happen, _)| *happen)
            .flat_map(|(_, planned_faults)| planned_faults.iter().copied())
            .collect()
    }
}
