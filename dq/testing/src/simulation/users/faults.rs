//! Which faults a simulation of a user's program has.

use std::ops::RangeInclusive;

use super::super::profile::Fault;

/// Which faults happen, and how many in one run.
///
/// Default: crashes, pauses, a bad network, outages and clean stops, at most 2 in a run. Few faults in many runs find as
/// much as many in a few, and their accounts can be read.
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
        Self {
            crashes: true,
            pauses: true,
            network: true,
            outages: true,
            stops: true,
            clock_jumps: false,
            fall_backs: false,
            most: 2,
        }
    }
}

/// What can be done on the occasion of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedFault {
    /// A fault of the engine, of one node where it is one of a node.
    Engine(Fault),
    /// One of the next requests of a process: it is lost, its answer is, or it is held up.
    Connection,
}

impl Faults {
    /// None at all. Jobs run on time and once; a run costs a fraction.
    pub const fn none() -> Self {
        Self {
            crashes: false,
            pauses: false,
            network: false,
            outages: false,
            stops: false,
            clock_jumps: false,
            fall_backs: false,
            most: 2,
        }
    }

    /// Nodes die as by `kill -9`: at a time, at any request to the store, or where a handler goes on after an `.await`.
    /// Another node starts 1 to 6 s later. Default: yes.
    pub const fn crashes(mut self, happen: bool) -> Self {
        self.crashes = happen;
        self
    }

    /// Nodes stand still for 1 to 45 s, at the same places, and go on: most lose their lease meanwhile, and a handler goes
    /// on while its job runs elsewhere. Default: yes.
    pub const fn pauses(mut self, happen: bool) -> Self {
        self.pauses = happen;
        self
    }

    /// Requests to the store are lost, or their answers are, or they are executed up to 45 s late; signals are lost; all
    /// are slow for a while; a node hears no answers for up to 40 s. Default: yes.
    pub const fn network(mut self, happen: bool) -> Self {
        self.network = happen;
        self
    }

    /// The store is away for 1 to 40 s: requests are lost, refused, reset, or executed afterwards. Default: yes.
    pub const fn outages(mut self, happen: bool) -> Self {
        self.outages = happen;
        self
    }

    /// Nodes stop cleanly, as at a deployment, and others start 1 to 8 s later. Default: yes.
    pub const fn stops(mut self, happen: bool) -> Self {
        self.stops = happen;
        self
    }

    /// The clocks of the store and of nodes jump, up to 10 minutes both ways: jobs may run early or late by that. Default: no.
    pub const fn clock_jumps(mut self, happen: bool) -> Self {
        self.clock_jumps = happen;
        self
    }

    /// The store falls back to an earlier state, as one that loses its latest writes: jobs may be lost, or run again after
    /// their ack. Only the judge's rules that hold then are judged; let the check allow it. Default: no.
    pub const fn fall_backs(mut self, happen: bool) -> Self {
        self.fall_backs = happen;
        self
    }

    /// The most faults of one run; a run draws how many of them it has. Default: 2, fewer than the default cap of crashes
    /// (3), so that no job ends in DEAD because its node died under it again and again. With more, a check must allow DEAD jobs.
    pub const fn most(mut self, faults: u64) -> Self {
        self.most = faults;
        self
    }

    pub(super) const fn range(&self) -> RangeInclusive<u64> {
        1..=self.most
    }

    /// Every planned there is, the likelier ones more than once.
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
