//! What must hold of nodes after each step, beyond what the store shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::checker::Checker;
use super::network_state::Subscriber;
use super::node::SimNode;
use super::profile::Profile;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use super::units::SECOND;
use dq::environment::StoreClock as _;
use dq::job::{JobId, NodeId, TopicKey};
use dq::testing::seam::JobView;
use dq::time::Timestamp;

impl Sim {
    /// Checks what only shows over time: an unresponsive or mute node must not keep jobs while another node is well.
    pub(super) fn check_nodes(&self) {
        const LONG: u64 = 60 * SECOND;
        let now = self.cluster.now();
        let micros = self.clock.micros();
        if self.settings().profile == Profile::Large {
            self.for_checkers(|checker| checker.check_slow(micros));
        }
        if self.is_calm() {
            return;
        }
        let alive = self.alive();
        if self.settings().profile == Profile::Signals {
            self.check_subscriptions(&alive);
        }
        let clock = Timestamp::floor_micros(micros);
        for node in alive.iter().filter(|node| !node.process.is_paused()) {
            // What is not polled cannot end.
            let process = &node.process;
            let awake = process.paused_until.load(Relaxed).max(process.starved_until.load(Relaxed));
            self.for_checkers(|checker| checker.check_handlers(&node.id, awake, micros, now));
        }
        for node in alive.iter().filter(|node| node.process.is_unresponsive() || node.process.is_mute()) {
            let process = &node.process;
            // No renewal makes a lease this long: the store's clock has jumped back. The minute begins when the lease ends.
            let is_beyond = |end: Timestamp| end.since(clock) > self.settings().node.lease;
            let mut beyond = false;
            self.for_checkers(|checker| beyond |= checker.lease_of(&node.id).is_some_and(is_beyond));
            if beyond {
                process.unresponsive_since.store(now, Relaxed);
                process.mute_since.store(now, Relaxed);
            }
            // What it sends after a pause may claim, because its first answer is lost only then.
            let awake = process.paused_until.load(Relaxed);
            let long = |since: &AtomicU64| now >= since.load(Relaxed).max(awake) + LONG;
            let unresponsive = process.is_unresponsive() && long(&process.unresponsive_since);
            if !(unresponsive || process.is_mute() && long(&process.mute_since)) {
                continue;
            }
            self.for_checkers(|checker| {
                let rows = |job: &JobView| job.row.as_ref().is_some_and(|row| row.node == node.id);
                let well = |other: &&Arc<SimNode>| other.id != node.id && self.is_well(checker, other, 50 * SECOND);
                if checker.before.jobs.values().any(rows) && alive.iter().any(|other| well(&other)) {
                    let (rule, how) = if unresponsive { (6, "unresponsive") } else { (20, "mute") };
                    checker.bad(format!("[{rule}] {} has been {how} for a minute, but keeps jobs", process.name));
                }
            });
        }
    }

    /// Which rule jobs that never end break: other nodes must find the rows of a node that is gone, a living node finds its
    /// own.
    pub(super) fn rule_of_stuck(&self) -> &'static str {
        let alive = self.alive();
        let (mut known, mut gone) = (false, false);
        self.for_checkers(|checker| {
            for row in checker.before.jobs.values().filter_map(|job| job.row.as_ref()) {
                let is_known = alive.iter().any(|node| node.id == row.node);
                (known, gone) = (known || is_known, gone || !is_known);
            }
        });
        match (gone, known) {
            (true, _) => "[8] ",
            (false, true) => "[7] ",
            (false, false) => "",
        }
    }

    /// Returns whether something of another topic runs in the process of a node, or ran there when it died.
    pub(super) fn is_used_elsewhere(&self, key: &TopicKey, node: &NodeId) -> bool {
        let mut used = false;
        self.for_topics(|other, checker| used |= other != key && checker.has_run_on(node));
        used
    }

    /// A handler of a topic is about to start: nothing of another topic may be alone in its process.
    pub(super) fn check_beside(&self, key: &TopicKey, node: &NodeId, id: &JobId) {
        if without("19") {
            return;
        }
        let (now, elsewhere) = (self.cluster.now(), self.is_used_elsewhere(key, node));
        lock(&self.checker_of(key)).runs_elsewhere = elsewhere;
        self.for_topics(|other, checker| {
            if let Some(alone) = checker.alone_on(node, None, now).filter(|_| other != key && !checker.fell) {
                checker.bad(format!("[19] {id} of {} starts on {node} beside {alone}, which is alone", key.topic));
            }
        });
    }

    /// Returns whether a node has been connected and reconciled for this long.
    pub(super) fn is_well(&self, checker: &Checker, node: &SimNode, long: u64) -> bool {
        let now = self.cluster.now();
        let settled = checker.node_records.get(&node.id).and_then(|record| record.settled);
        let process = &node.process;
        let free = !process.is_dead() && !process.is_unresponsive() && !process.is_mute() && !process.is_paused();
        // A node reads what arrived during a pause when it resumes.
        let since = |settled: u64| settled.max(node.process.paused_until.load(Relaxed));
        free && !node.stopping.load(Relaxed) && settled.is_some_and(|settled| since(settled) + long < now)
    }

    /// Checks that every node that has been there for a while has subscribed to each topic again.
    fn check_subscriptions(&self, alive: &[Arc<SimNode>]) {
        let (now, millis, subscribers) = (self.cluster.now(), self.clock.micros() / 1000, self.subscribers());
        for node in alive {
            self.for_topics(|key, checker| {
                let born = checker.node_records.get(&node.id).map_or(now, |record| record.born_at);
                let is_its = |subscriber: &Arc<Subscriber>| {
                    subscriber.topic == *key
                        && Arc::ptr_eq(&subscriber.process, &node.process)
                        && !subscriber.outer.is_closed()
                };
                let is_over = millis > checker.lateness_until && now > born + SECOND;
                if is_over && !subscribers.iter().any(is_its) {
                    let who = &node.process.name;
                    checker.bad(format!("[23] {who} has not subscribed to {} again after a fault", key.topic));
                }
            });
        }
    }

    /// Checks that no node reclaims the jobs of a node that is connected and renews its lease.
    pub(super) fn check_reclaim(&self, checker: &mut Checker, from: &NodeId) {
        let Some(node) = lock(&self.nodes).iter().find(|node| node.id == *from).cloned() else { return };
        if checker.holds(from) && self.is_well(checker, &node, SECOND) {
            checker.bad(format!(
                "[20] {} is connected and renews its lease, but its jobs are reclaimed",
                node.process.name
            ));
        }
    }

    /// Checks that, without faults, a job is late only while no permit is free.
    pub(super) fn check_permits(&self, checker: &mut Checker, micros: u64) {
        if !self.settings().are_punctual() {
            return;
        }
        let rows = |node: &SimNode| {
            checker.before.jobs.values().filter(|job| job.row.as_ref().is_some_and(|row| row.node == node.id)).count()
        };
        let is_free = |node: &Arc<SimNode>| self.is_well(checker, node, 0) && rows(node) < self.settings().concurrency;
        let free = self.alive().iter().any(is_free);
        if !(free && checker.permit_free) {
            checker.punctual_since = Some(micros / 1000);
        }
        checker.permit_free = free;
    }
}
