//! Faults of a user's program: when they happen, and what they do.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::super::cluster::ClusterState;
use super::super::network_state::Outage;
use super::super::node::SimNode;
use super::super::process::Process;
use super::super::profile::Fault;
use super::super::random::RandomSource;
use super::super::sim::Sim;
use super::super::sync::lock;
use super::super::units::{MS, SECOND};
use super::faults::{Faults, PlannedFault};
use super::program::{AtStep, Host, Program, WORK};
use dq::job::NodeId;

impl Faults {
    /// How many faults a run has.
    pub(super) fn draw(&self, cluster: &ClusterState) -> u64 {
        if self.range().is_empty() || cluster.chance(0.1) { 0 } else { 1 + cluster.below(*self.range().end()) }
    }
}

/// Counts down, and returns true at zero.
const fn is_now(left: &mut u64) -> bool {
    let now = *left == 0;
    *left = left.saturating_sub(1);
    now
}

impl Sim {
    /// Chooses the moment of a fault: at a request, at a step of a handler, or some time later.
    pub(super) fn inject(
        self: &Arc<Self>,
        program: &Arc<Program>,
        planned: PlannedFault,
        node: Option<&NodeId>,
        random: RandomSource,
    ) {
        let at = lock(&self.nodes).iter().find(|at| Some(&at.id) == node && !at.process.is_dead()).cloned();
        let name = at.as_ref().map_or(WORK, |at| &at.process.name);
        let mut pending_faults = lock(&program.pending_faults);
        let pending_faults = pending_faults.entry(name.to_owned()).or_default();
        let moment = random.below(4);
        match (planned, at) {
            (PlannedFault::Connection, _) => pending_faults.connection = Some(random.below(4)),
            (PlannedFault::Engine(Fault::Kill), Some(node)) if moment == 0 => {
                node.dies_after.store(random.below(4), Relaxed);
            }
            (PlannedFault::Engine(Fault::Pause), Some(node)) if moment == 0 => {
                node.pause.store(random.between(SECOND, 45 * SECOND), Relaxed);
                node.pauses_after.store(random.below(4), Relaxed);
            }
            (PlannedFault::Engine(fault), Some(_)) if moment < 3 => {
                let left = random.below(random.pick(&[2, 4, 8, 16]));
                pending_faults.at_step = Some(AtStep { fault, left, run: None, random });
            }
            (PlannedFault::Engine(fault), node) => {
                let after = random.below(random.pick(&[MS, 10 * MS, 100 * MS, SECOND, 10 * SECOND]));
                let (sim, program) = (Arc::clone(self), Arc::clone(program));
                let at = self.cluster.now() + after;
                self.cluster.at(at, move || sim.happen(&program, fault, node.as_ref(), "", &random));
            }
        }
    }

    /// A fault happens, to this node or to all.
    fn happen(
        self: &Arc<Self>,
        program: &Program,
        fault: Fault,
        node: Option<&Arc<SimNode>>,
        when: &str,
        random: &RandomSource,
    ) {
        match node {
            Some(node) if node.process.is_dead() => {}
            Some(node) => self.inject_program_node_fault(program, fault, node, when, random),
            None => self.inject_store_fault(fault, when, random),
        }
    }

    fn inject_program_node_fault(
        self: &Arc<Self>,
        program: &Program,
        fault: Fault,
        node: &Arc<SimNode>,
        when: &str,
        random: &RandomSource,
    ) {
        let (cluster, now, name) = (&self.cluster, self.cluster.now(), &node.process.name);
        match fault {
            Fault::Kill => {
                self.note(|| format!("{name} IS KILLED{when}"));
                self.kill(&node.process);
            }
            Fault::Stop => {
                self.fault();
                self.note(|| format!("{name} IS STOPPED cleanly{when}"));
                node.stopping.store(true, Relaxed);
                if let Some(running) = &*lock(&node.running) {
                    running.order_stop(Duration::from_millis(program.grace_millis.load(Relaxed)));
                }
                let sim = Arc::clone(self);
                let after = random.between(SECOND, 8 * SECOND);
                cluster.at(now + after, move || sim.start_node());
            }
            Fault::Pause => self.pause_node(&node.process, when, random),
            Fault::Unresponsive => {
                let seconds = random.pick(&[1, 3, 10, 40]);
                self.note(|| format!("{name} RECEIVES NO ANSWERS for {seconds} s{when}"));
                self.fault();
                node.process.make_unresponsive(now + seconds * SECOND);
                self.note_fault(&node.process);
            }
            Fault::Subscribers => {
                self.note(|| format!("{name} LOSES ITS SIGNALS{when}"));
                self.fault();
                self.break_subscriptions(Some(&node.process));
            }
            Fault::Wall => {
                let by = random.between(0, 1_200 * SECOND) as i64 - 600 * SECOND as i64;
                self.note(|| format!("THE CLOCK of {name} is {} s ahead", by / SECOND as i64));
                self.fault();
                node.process.clock.skew.store(by, Relaxed);
            }
            Fault::Snap => self.keep_all(),
            Fault::Fall => self.fall_back_to_kept(),
            other => self.inject_store_fault(other, when, random),
        }
    }

    /// A fault that hits all nodes.
    fn inject_store_fault(self: &Arc<Self>, fault: Fault, when: &str, random: &RandomSource) {
        self.fault();
        self.cause(fault, random);
        let (now, network_state) = (self.cluster.now(), self.network_state());
        match fault {
            Fault::Out => {
                let millis = (network_state.outage_until - now) / MS;
                let outage = match network_state.outage {
                    Outage::Silent => "requests are lost",
                    Outage::Loading => "requests are refused",
                    Outage::Reset => "connections are reset",
                    Outage::Frozen => "requests are executed afterwards",
                };
                self.note(|| format!("THE STORE CANNOT BE REACHED for {millis} ms{when}: {outage}"));
            }
            Fault::Slow => {
                let millis = (network_state.slow_until - now) / MS;
                self.note(|| format!("THE NETWORK IS SLOW for {millis} ms{when}"));
            }
            Fault::Jump => {
                let ahead = self.clock.skew.load(Relaxed) / MS as i64;
                self.note(|| format!("THE CLOCK OF THE STORE is {ahead} ms ahead"));
            }
            _ => {}
        }
    }

    fn pause_node(&self, process: &Arc<Process>, when: &str, random: &RandomSource) {
        let (now, length) = (self.cluster.now(), random.between(SECOND, 45 * SECOND));
        self.note(|| format!("{} IS PAUSED for {} ms{when}", process.name, length / MS));
        self.fault();
        process.pause(now + length);
        self.note_fault(process);
    }

    fn fall_back_to_kept(&self) {
        if self.fall_back() {
            self.fault();
            self.note(|| "THE STORE FALLS BACK to an earlier state".into());
        }
    }
}

impl Program {
    /// Takes the connection fault that waits for this request of a process, if one does.
    pub(super) fn take_connection_fault(&self, sim: &Sim, process: &Process, random: &RandomSource) -> Option<u64> {
        let mut pending_faults = lock(&self.pending_faults);
        let pending_faults = pending_faults.get_mut(&process.name);
        let faults = pending_faults.is_some_and(|pending_faults| pending_faults.connection.take_if(is_now).is_some());
        faults.then(|| {
            sim.fault();
            random.below(5)
        })
    }

    /// A handler makes a step, which may be the moment of a fault.
    pub(super) fn inject_at_step(&self, host: &Host, run: u64, returned: bool, name: &str) {
        let mut pending_faults = lock(&self.pending_faults);
        let Some(arms_of) = pending_faults.get_mut(&host.process.name) else { return };
        let is_now = |at: &mut AtStep| {
            let of_this = *at.run.get_or_insert(run) == run;
            let now = of_this && (at.left == 0 || returned);
            at.left = at.left.saturating_sub(u64::from(of_this));
            now
        };
        let Some(AtStep { fault, random, .. }) = arms_of.at_step.take_if(is_now) else { return };
        drop(pending_faults);
        let node = lock(&host.sim.nodes).iter().find(|node| node.id == host.node).cloned();
        let after = if returned { ", just after it ran" } else { " while it runs" };
        host.sim.happen(self, fault, node.as_ref(), &format!("{after} {name}"), &random);
    }
}
