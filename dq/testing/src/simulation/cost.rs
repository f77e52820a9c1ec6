//! How many requests a run without faults may send: some for each job and command, and a few for each second of a node.

use std::sync::atomic::Ordering::Relaxed;

use super::sim::Sim;
use super::sync::lock;
use super::units::SECOND;

impl Sim {
    /// Allows 4 requests for a run, 3 for an add, 3 for a command, and for each topic one in 4 s for a node, and 50 more: under twice what the
    /// costliest of 400 seeds sent.
    pub(super) fn check_cost(&self) {
        if !self.settings().are_calm() || self.is_over() {
            return;
        }
        let requests = lock(&self.requests);
        let asked: u64 = requests.iter().filter(|(kind, _)| **kind != "publish").map(|(_, asked)| asked).sum();
        let commands = requests.get("command").copied().unwrap_or_default();
        let topics = self.settings().topics;
        let waking = topics * (lock(&self.nodes).len() as u64 * self.cluster.now() / (4 * SECOND));
        let done = 4 * self.handled() + 3 * self.versions.load(Relaxed) + 3 * commands;
        let most = done + waking + 50 * topics;
        self.cluster.log(|| format!("{asked} requests of at most {most}: {requests:?}"));
        if asked > most {
            self.bad(format!("[23] {asked} requests without a fault, but at most {most} are allowed: {requests:?}"));
        }
    }
}
