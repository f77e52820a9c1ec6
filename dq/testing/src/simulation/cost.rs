//! How many requests a run without faults may send: some for each job and command, and a few for each second of a node.

use std::sync::atomic::Ordering::Relaxed;

use super::sim::Sim;
use super::sync::lock;
use super::units::SECOND;

impl Sim {
    /// Allows 4 requests for a run, a tick and a node that a pause or a drain concerns, 3 for an add, a command and a change, and for
    /// each topic one in 4 s for a node, and 50 more: under twice what the costliest of 400 seeds sent.
    pub(super) fn check_cost(&self) {
        if !self.settings().are_calm() || self.is_over() {
            return;
        }
        let requests = lock(&self.requests);
        let asked: u64 = requests
            .iter()
            .filter(|(kind, _)| !["publish", "relay", "job_set"].contains(*kind))
            .map(|(_, asked)| asked)
            .sum();
        let count = |kind| requests.get(kind).copied().unwrap_or_default();
        let commands = count("command") + count("change");
        let topics = self.settings().topics;
        let waking = topics * (lock(&self.nodes).len() as u64 * self.cluster.now() / (4 * SECOND));
        let mut ticks = 0;
        self.for_checkers(|checker| ticks += checker.ticks);
        // Each node asks when the state of a topic has changed, and gives back what has not begun.
        let sets = count("set") * lock(&self.nodes).len() as u64;
        let done = 4 * (self.handled() + ticks + sets) + 3 * self.versions.load(Relaxed) + 3 * commands;
        let most = done + waking + 50 * topics;
        self.cluster.log(|| format!("{asked} requests of at most {most}: {requests:?}"));
        if asked > most {
            self.bad(format!("[23] {asked} requests without a fault, but at most {most} are allowed: {requests:?}"));
        }
    }
}
