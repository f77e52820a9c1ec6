//! The nodes of a run: real ones, each in a process of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::checker::{Caps, Checker};
use super::cluster::{MS, SECOND, lock};
use super::process::Process;
use super::script::Scripted;
use super::sim::Sim;
use super::store::FaultyStore;
use super::terms::Profile;
use dq::config::{Listing, NodeSettings, TopicSettings};
use dq::environment::{Runtime, StoreClock as _};
use dq::job::NodeId;
use dq::listener::AckMode;
use dq::provider::Provider;
use dq::testing::seam::{self, Running};
use dq::testing::seam::{Plan, TopicPlan};
use dq::time::Timestamp;

/// What the topic allows.
pub(super) const CAPS: Caps = Caps {
    crashes: 3,
    attempts: 4,
    backoff: &[Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(4)],
    permits: 0,
    dead_kept: Duration::from_secs(60),
};

/// A node and its process.
#[derive(Debug)]
pub(super) struct NodeAt {
    pub(super) process: Arc<Process>,
    pub(super) id: NodeId,
    pub(super) running: Mutex<Option<Running>>,
    pub(super) stopping: AtomicBool,
    /// It dies when it has sent this many requests; it stops for a while then.
    pub(super) dies_after: AtomicU64,
    pub(super) pauses_after: AtomicU64,
    pub(super) pause: AtomicU64,
}

impl Sim {
    /// Starts a node.
    pub(super) fn start_node(self: &Arc<Self>) {
        if let Some(program) = self.program.get() {
            return self.start_program_node(program);
        }
        let number = self.names.fetch_add(1, Relaxed) + 1;
        let process = Process::new(format!("n{number}"), &self.cluster);
        let environment = process.environment();
        let id = environment.node_id();
        let node = Arc::new(NodeAt {
            process: Arc::clone(&process),
            id: id.clone(),
            running: Mutex::default(),
            stopping: AtomicBool::new(false),
            dies_after: AtomicU64::new(u64::MAX),
            pauses_after: AtomicU64::new(u64::MAX),
            pause: AtomicU64::new(0),
        });
        self.cluster.say(|| format!("{} starts as {id}", process.name));
        self.for_checkers(|checker| checker.conduct.entry(id.clone()).or_default().disturbed_at = self.cluster.now());
        lock(&self.nodes).push(Arc::clone(&node));
        let store = Arc::new(FaultyStore { sim: Arc::clone(self), process: Arc::clone(&process) });
        let mut settings = NodeSettings::default();
        settings.grace = Duration::from_secs(3);
        let provider = Provider::root(self.key.app.clone(), store.clone(), environment.clone(), settings.clone());
        let listener = Arc::new(Scripted {
            sim: Arc::clone(self),
            process: Arc::clone(&process),
            node: id.clone(),
            environment: environment.clone(),
            provider: OnceLock::from(provider),
        });
        let broadcasts = self.broadcast_listeners(&process, &id, &environment);
        let topic = TopicPlan {
            key: self.key.clone(),
            listener,
            name: "scripted",
            declared_at: "the simulation",
            settings: self.topic_settings(),
            listing: Listing::default(),
        };
        let plan = Plan {
            app: self.key.app.clone(),
            node: id,
            store,
            environment: environment.clone(),
            settings,
            listing: Listing::default(),
            topics: vec![topic],
            broadcasts,
            refused: BTreeMap::new(),
        };
        environment.spawn(Runtime::Own, async move {
            *lock(&node.running) = Some(seam::start(&plan));
        });
    }

    fn topic_settings(&self) -> TopicSettings {
        let terms = self.terms();
        let mut settings = TopicSettings::default();
        settings.concurrency = terms.concurrency;
        settings.timeout = Some(Duration::from_micros(terms.timeout));
        // As many retries as `CAPS` has attempts, less one.
        settings.retry = "200ms, 1s, 4s".parse().expect("it is a good policy");
        settings.max_crashes = CAPS.crashes;
        settings.dead_kept = self.checker().caps.unwrap_or(CAPS).dead_kept;
        settings.unacked_age = Duration::from_secs(20);
        settings.ack = if terms.profile == Profile::Claim { AckMode::OnClaim } else { AckMode::OnReturn };
        settings
    }

    pub(super) fn alive(&self) -> Vec<Arc<NodeAt>> {
        let alive = |node: &&Arc<NodeAt>| !node.process.is_dead() && !node.stopping.load(Relaxed);
        lock(&self.nodes).iter().filter(alive).cloned().collect()
    }

    fn node_of(&self, process: &Arc<Process>) -> Option<Arc<NodeAt>> {
        lock(&self.nodes).iter().find(|node| Arc::ptr_eq(&node.process, process)).cloned()
    }

    /// A process dies, and another node starts some time later.
    pub(super) fn kill(self: &Arc<Self>, process: &Arc<Process>) {
        if process.is_dead() {
            return;
        }
        self.cluster.say(|| format!("{} dies", process.name));
        self.tell_what_outlives(process);
        self.fault();
        if let Some(node) = self.node_of(process) {
            self.for_checkers(|checker| {
                let conduct = checker.conduct.entry(node.id.clone()).or_default();
                (conduct.dead, conduct.died_at) = (true, self.cluster.now());
            });
            let sim = Arc::clone(self);
            let after = self.terms().kills.map_or_else(
                || self.cluster.random(&process.name, u64::MAX).between(SECOND, 6 * SECOND),
                |_| self.replaced_after(),
            );
            self.cluster.at(self.cluster.now() + after, move || sim.start_node());
        }
        process.kill();
    }

    /// A process sends a request: the faults that wait for that happen.
    pub(super) fn process_acts(self: &Arc<Self>, process: &Arc<Process>, kind: &'static str) {
        *lock(&self.requests).entry(kind).or_default() += 1;
        let Some(node) = self.node_of(process) else { return };
        let burns = |fuse: &AtomicU64| {
            let left = fuse.load(Relaxed);
            if left != u64::MAX {
                fuse.store(left.checked_sub(1).unwrap_or(u64::MAX), Relaxed);
            }
            left == 0
        };
        if burns(&node.dies_after) {
            self.tell(None, || format!("{} IS KILLED before it sends its {kind}", process.name));
            self.kill(process);
        }
        if burns(&node.pauses_after) {
            let until = self.cluster.now() + node.pause.load(Relaxed);
            let millis = (until - self.cluster.now()) / MS;
            self.tell(None, || format!("{} STANDS STILL for {millis} ms before it sends its {kind}", process.name));
            process.pause(until);
            self.note_fault(process);
        }
    }

    /// Something went wrong between a process and the store.
    pub(super) fn note_fault(&self, process: &Arc<Process>) {
        if let Some(node) = self.node_of(process) {
            self.for_checkers(|checker| {
                let conduct = checker.conduct.entry(node.id.clone()).or_default();
                (conduct.disturbed_at, conduct.settled) = (self.cluster.now(), None);
            });
        }
    }

    pub(super) fn stop_node(self: &Arc<Self>, node: &Arc<NodeAt>) {
        node.stopping.store(true, Relaxed);
        self.cluster.say(|| format!("{} stops", node.process.name));
        if let Some(running) = &*lock(&node.running) {
            running.order_stop(Duration::from_secs(3));
        }
    }

    /// What only shows over time: a node that is deaf, or mute, must not keep jobs while another is well.
    pub(super) fn check_nodes(&self) {
        const LONG: u64 = 60 * SECOND;
        let now = self.cluster.now();
        if self.is_calm() {
            return;
        }
        let (alive, micros) = (self.alive(), self.clock.micros());
        let clock = Timestamp::floor_micros(micros);
        for node in alive.iter().filter(|node| !node.process.is_paused() && self.terms().kills.is_none()) {
            self.checker().look_at_handlers(&node.id, node.process.paused_until.load(Relaxed), micros, now);
        }
        for node in alive.iter().filter(|node| node.process.is_unresponsive() || node.process.is_mute()) {
            let (process, mut checker) = (&node.process, self.checker());
            // No renewal makes a lease this long: the store's clock has jumped back under it. The minute begins at its end.
            if checker.lease_of(&node.id).is_some_and(|end| end.since(clock) > NodeSettings::default().lease) {
                process.unresponsive_since.store(now, Relaxed);
                process.mute_since.store(now, Relaxed);
            }
            let long = |since: &AtomicU64| now >= since.load(Relaxed) + LONG;
            let unresponsive = process.is_unresponsive() && long(&process.unresponsive_since);
            if !(unresponsive || process.is_mute() && long(&process.mute_since)) {
                continue;
            }
            let keeps = checker.before.jobs.values().any(|job| job.row.as_ref().is_some_and(|row| row.node == node.id));
            let well = |other: &&Arc<NodeAt>| self.is_well(&checker, other, 50 * SECOND);
            if keeps && alive.iter().filter(|other| other.id != node.id).any(|other| well(&other)) {
                let (rule, how) = if unresponsive { (6, "deaf") } else { (20, "mute") };
                checker.bad(format!("[{rule}] {} has been {how} for a minute and keeps jobs", process.name));
            }
        }
    }

    /// Which rule jobs show that never end: rows of a node that is gone are for others to find, those of a living one are
    /// for itself to find.
    pub(super) fn rule_of_stuck(&self) -> &'static str {
        let (alive, checker) = (self.alive(), self.checker());
        let rows = checker.before.jobs.values().filter_map(|job| job.row.as_ref());
        let (known, gone): (Vec<_>, Vec<_>) = rows.partition(|row| alive.iter().any(|node| node.id == row.node));
        match (gone.is_empty(), known.is_empty()) {
            (false, _) => "[8] ",
            (true, false) => "[7] ",
            (true, true) => "",
        }
    }

    /// Whether a node has been connected and reconciled for this long.
    pub(super) fn is_well(&self, checker: &Checker, node: &NodeAt, long: u64) -> bool {
        let now = self.cluster.now();
        let settled = checker.conduct.get(&node.id).and_then(|conduct| conduct.settled);
        let process = &node.process;
        let free = !process.is_dead() && !process.is_unresponsive() && !process.is_mute() && !process.is_paused();
        // What arrived while it was paused it reads when it goes on.
        let since = |settled: u64| settled.max(node.process.paused_until.load(Relaxed));
        free && !node.stopping.load(Relaxed) && settled.is_some_and(|settled| since(settled) + long < now)
    }

    /// Nobody takes the jobs of a node that is connected and renews its lease.
    pub(super) fn check_reclaim(&self, checker: &mut Checker, from: &NodeId) {
        let Some(node) = lock(&self.nodes).iter().find(|node| node.id == *from).cloned() else { return };
        if checker.holds(from) && self.is_well(checker, &node, SECOND) {
            checker.bad(format!("[20] {} is connected and renewing, and its jobs are reclaimed", node.process.name));
        }
    }

    /// Without faults a job is late only while no permit is free.
    pub(super) fn check_permits(&self, checker: &mut Checker, micros: u64) {
        if !self.terms().are_calm() {
            return;
        }
        let rows = |node: &NodeAt| {
            checker.before.jobs.values().filter(|job| job.row.as_ref().is_some_and(|row| row.node == node.id)).count()
        };
        let is_free = |node: &Arc<NodeAt>| self.is_well(checker, node, 0) && rows(node) < self.terms().concurrency;
        let free = self.alive().iter().any(is_free);
        if !(free && checker.permit_free) {
            checker.punctual_since = Some(micros / 1000);
        }
        checker.permit_free = free;
    }
}
