//! How nodes live and end: kills, pauses and clean stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::node::SimNode;
use super::process::Process;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use super::units::{MS, SECOND};
use dq::environment::StoreClock as _;

impl Sim {
    pub(super) fn alive(&self) -> Vec<Arc<SimNode>> {
        let alive = |node: &&Arc<SimNode>| !node.process.is_dead() && !node.stopping.load(Relaxed);
        lock(&self.nodes).iter().filter(alive).cloned().collect()
    }

    pub(super) fn node_of(&self, process: &Arc<Process>) -> Option<Arc<SimNode>> {
        lock(&self.nodes).iter().find(|node| Arc::ptr_eq(&node.process, process)).cloned()
    }

    /// Kills a process. If it is a node, another node starts some time later.
    pub(super) fn kill(self: &Arc<Self>, process: &Arc<Process>) {
        if process.is_dead() {
            return;
        }
        self.cluster.log(|| format!("{} dies", process.name));
        if self.is_file() {
            return self.crash();
        }
        self.workload.killed(self, process);
        self.fault();
        if let Some(node) = self.node_of(process) {
            let (now, micros) = (self.cluster.now(), self.clock.micros());
            self.for_checkers(|checker| checker.node_dies(&node.id, now, micros));
            let sim = Arc::clone(self);
            let after = self.cluster.random(&process.name, u64::MAX).between(SECOND, 6 * SECOND);
            self.cluster.at(self.cluster.now() + after, move || sim.start_node());
        }
        process.kill();
        // The store notices at once that the connection of a dead process is closed.
        if !without("watcher") {
            self.break_subscriptions(Some(process));
        }
    }

    /// A process sends a request: faults that wait for this happen now.
    pub(super) fn process_acts(self: &Arc<Self>, process: &Arc<Process>, kind: &'static str) {
        *lock(&self.requests).entry(kind).or_default() += 1;
        let Some(node) = self.node_of(process) else { return };
        let reaches_zero = |counter: &AtomicU64| {
            let left = counter.load(Relaxed);
            if left != u64::MAX {
                counter.store(left.checked_sub(1).unwrap_or(u64::MAX), Relaxed);
            }
            left == 0
        };
        let settles = kind == "settle" && self.network_state().kills_next_settle;
        if settles {
            self.change_network_state(|network_state| network_state.kills_next_settle = false);
        }
        if reaches_zero(&node.dies_after) || settles {
            self.note(|| format!("{} IS KILLED before it sends its {kind}", process.name));
            self.kill(process);
        }
        if reaches_zero(&node.pauses_after) {
            let until = self.cluster.now() + node.pause.load(Relaxed);
            let millis = (until - self.cluster.now()) / MS;
            self.note(|| format!("{} IS PAUSED for {millis} ms before it sends its {kind}", process.name));
            process.pause(until);
            self.note_fault(process);
        }
    }

    /// Records that something went wrong between a process and the store.
    pub(super) fn note_fault(&self, process: &Arc<Process>) {
        if let Some(node) = self.node_of(process) {
            self.for_checkers(|checker| {
                let record = checker.node_records.entry(node.id.clone()).or_default();
                (record.disturbed_at, record.settled) = (self.cluster.now(), None);
            });
        }
    }

    pub(super) fn stop_node(self: &Arc<Self>, node: &Arc<SimNode>) {
        node.stopping.store(true, Relaxed);
        self.disturb_takeovers(Some(&node.process));
        self.cluster.log(|| format!("{} stops", node.process.name));
        if let Some(running) = &*lock(&node.running) {
            running.order_stop(Duration::from_secs(3));
        }
    }
}
