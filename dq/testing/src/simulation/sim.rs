//! One simulation: the store, the processes, and what the run has recorded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::checker::{Caps, Checker, Did, Expected};
use super::cluster::{ClusterState, JumpyClock};
use super::files::Files;
use super::ledger::Ledger;
use super::network_state::{NetworkState, Subscriber};
use super::node::{CAPS, SimNode};
use super::process::Process;
use super::profile::Profile;
use super::random::RandomSource;
use super::settings::RunSettings;
use super::sync::lock;
use dq::job::{AppName, Fence, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::memory::{MemoryStore, Snapshot};
use dq::store::{NewJob, Numbered};
use dq::testing::seam::View;

/// A fault that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InjectedFault {
    /// Its name, which is the same in every run of the seed.
    pub name: String,
    /// When it happened, in µs of simulated time.
    pub at: u64,
    /// What happened.
    pub what: String,
}

/// The names of the topics of dq's own workload, of which a run has the first few.
pub(super) const TOPICS: [&str; 3] = ["t", "u", "v"];

/// What the nodes of a run do: dq's own scripted jobs, or a user's program.
pub(super) trait Workload: fmt::Debug + Send + Sync {
    /// Starts a node.
    fn start_node(self: Arc<Self>, sim: &Arc<Sim>);

    /// Returns how the connection of a process fails with this request, if it does: 0 loses this and later requests, 1 and
    /// 2 lose answers, any other number delays requests.
    fn connection_fault(&self, sim: &Sim, process: &Process, number: u64, random: &RandomSource) -> Option<u64>;

    /// Returns whether this is a user's program, which brings its own jobs.
    fn is_program(&self) -> bool {
        false
    }

    /// Gives the jobs of a batch their versions.
    fn stamp(&self, _: &ProducerId, _: &mut Numbered<NewJob>) {}

    /// Takes the jobs out of a batch that this run leaves out, and returns their places.
    fn leave_out(&self, _: &Process, _: &TopicKey, _: &mut Numbered<NewJob>) -> Vec<usize> {
        Vec::new()
    }

    /// Describes what a step did in a topic; the checker still has the state before it.
    fn narrate(&self, _: &Sim, _: &TopicKey, _: &Did, _: &Checker, _: &View) {}

    /// A step was checked.
    fn stepped(self: Arc<Self>, _: &Sim, _: &TopicKey, _: &Did) {}

    /// A process is about to be killed.
    fn killed(&self, _: &Sim, _: &Process) {}

    /// Returns whether an account of the run is kept.
    fn keeps_account(&self) -> bool {
        false
    }

    /// Writes an event, at a time in µs, into the account.
    fn account(&self, _: u64, _: String) {}

    /// Returns whether it has found something itself, so that the run is over.
    fn has_failed(&self) -> bool {
        false
    }
}

/// One simulation.
pub(super) struct Sim {
    pub(super) cluster: Arc<ClusterState>,
    pub(super) clock: Arc<JumpyClock>,
    pub(super) store: Mutex<MemoryStore>,
    /// Of a run on a `file:` store.
    pub(super) files: Mutex<Option<Files>>,
    /// The topics of dq's own workload. Each of its nodes listens to all of them.
    pub(super) keys: Vec<TopicKey>,
    settings: RunSettings,
    network_state: Mutex<NetworkState>,
    checkers: Mutex<BTreeMap<TopicKey, Arc<Mutex<Checker>>>>,
    pub(super) subscribers: Mutex<Vec<Arc<Subscriber>>>,
    pub(super) nodes: Mutex<Vec<Arc<SimNode>>>,
    pub(super) callers: Mutex<Vec<(Arc<Process>, Provider)>>,
    /// An earlier state of the store, and what the checkers expected of each topic then.
    snapshot: Mutex<Option<(Snapshot, BTreeMap<TopicKey, Expected>)>>,
    /// The follow-ups of the runs, and those of the kept state.
    pub(super) ledger: Mutex<Ledger>,
    kept_ledger: Mutex<Ledger>,
    /// Runs that something outside, like a webhook, could name.
    pub(super) known_runs: Mutex<VecDeque<(TopicKey, JobId, Fence)>>,
    pub(super) hidden: Mutex<BTreeSet<(TopicKey, NodeId)>>,
    calm: AtomicBool,
    pub(super) numbers: AtomicU64,
    pub(super) versions: AtomicU64,
    pub(super) names: AtomicU64,
    /// How many occasions for faults, and how many acts of callers, there were.
    pub(super) occasions: AtomicU64,
    pub(super) acts: AtomicU64,
    pub(super) injected: Mutex<Vec<InjectedFault>>,
    pub(super) acted: Mutex<Vec<u64>>,
    runs: Mutex<BTreeMap<u64, u64>>,
    pub(super) faults: AtomicU64,
    pub(super) requests: Mutex<BTreeMap<&'static str, u64>>,
    pub(super) workload: Arc<dyn Workload>,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Sim {
    pub(super) fn new(cluster: &Arc<ClusterState>, settings: RunSettings, workload: Arc<dyn Workload>) -> Arc<Self> {
        let clock = Arc::new(JumpyClock::new(cluster));
        let (files, store) = if settings.profile == Profile::File {
            let (files, store) = Files::new(&clock);
            (Some(files), store)
        } else {
            (None, MemoryStore::new(clock.clone()))
        };
        let keys: Vec<TopicKey> = TOPICS[..settings.topics as usize].iter().map(|name| key(name)).collect();
        let with_checker = |key: &TopicKey| (key.clone(), Arc::new(Mutex::new(checker(&settings))));
        let checkers = keys.iter().map(with_checker).collect();
        let network_state =
            NetworkState { failing: settings.failing, bandwidth: settings.bandwidth, ..NetworkState::default() };
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            store: Mutex::new(store),
            files: Mutex::new(files),
            clock,
            keys,
            settings,
            network_state: Mutex::new(network_state),
            checkers: Mutex::new(checkers),
            subscribers: Mutex::default(),
            nodes: Mutex::default(),
            callers: Mutex::default(),
            snapshot: Mutex::default(),
            ledger: Mutex::default(),
            kept_ledger: Mutex::default(),
            known_runs: Mutex::default(),
            hidden: Mutex::default(),
            calm: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            versions: AtomicU64::new(0),
            names: AtomicU64::new(0),
            occasions: AtomicU64::new(0),
            acts: AtomicU64::new(0),
            injected: Mutex::default(),
            acted: Mutex::default(),
            runs: Mutex::default(),
            faults: AtomicU64::new(0),
            requests: Mutex::default(),
            workload,
        })
    }

    /// The store; another one after each crash of a run on files.
    pub(super) fn store(&self) -> MemoryStore {
        lock(&self.store).clone()
    }

    pub(super) const fn settings(&self) -> &RunSettings {
        &self.settings
    }

    pub(super) fn network_state(&self) -> NetworkState {
        *lock(&self.network_state)
    }

    pub(super) fn change_network_state(&self, change: impl FnOnce(&mut NetworkState)) {
        change(&mut lock(&self.network_state));
    }

    /// The checker of a topic.
    pub(super) fn checker_of(&self, key: &TopicKey) -> Arc<Mutex<Checker>> {
        let new = || Arc::new(Mutex::new(Checker::of(self.settings.timeout)));
        Arc::clone(lock(&self.checkers).entry(key.clone()).or_insert_with(new))
    }

    /// Calls `act` with the checker of each topic.
    pub(super) fn for_checkers(&self, mut act: impl FnMut(&mut Checker)) {
        self.for_topics(|_, checker| act(checker));
    }

    /// Calls `act` with each topic and its checker.
    pub(super) fn for_topics(&self, mut act: impl FnMut(&TopicKey, &mut Checker)) {
        lock(&self.checkers).iter().for_each(|(key, checker)| act(key, &mut lock(checker)));
    }

    /// Reports a finding that is none of a single topic.
    pub(super) fn bad(&self, what: String) {
        if self.found().is_some() {
            return;
        }
        lock(&self.checker_of(&self.keys[0])).bad(what);
    }

    /// What the checker of a topic found, if one did.
    pub(super) fn found(&self) -> Option<String> {
        lock(&self.checkers).values().find_map(|checker| lock(checker).found.clone())
    }

    /// What has not ended yet, in any topic.
    pub(super) fn unfinished(&self) -> Option<String> {
        let mut left = Vec::new();
        self.for_topics(|key, checker| left.extend(checker.unfinished().map(|jobs| format!("{}: {jobs}", key.topic))));
        left.extend(self.missing_follow_ups());
        left.extend(lock(&self.ledger).sets.missing());
        (!left.is_empty()).then(|| left.join("; "))
    }

    /// How many handlers were started, in all topics.
    pub(super) fn handled(&self) -> u64 {
        let mut handled = 0;
        self.for_checkers(|checker| handled += checker.handled);
        handled
    }

    /// Keeps the state of the store, and what the checkers expect of it.
    pub(super) fn keep_all(&self) {
        let Ok(snapshot) = self.store().snapshot() else { return };
        let mut expected = BTreeMap::new();
        self.for_topics(|key, checker| drop(expected.insert(key.clone(), checker.expected.clone())));
        *lock(&self.snapshot) = Some((snapshot, expected));
        *lock(&self.kept_ledger) = lock(&self.ledger).clone();
    }

    /// The store falls back to the kept state. Returns false if none is kept.
    pub(super) fn fall_back(&self) -> bool {
        let Some((snapshot, mut expected)) = lock(&self.snapshot).take() else { return false };
        if self.store().restore(&snapshot).is_err() {
            return false;
        }
        *lock(&self.ledger) = lock(&self.kept_ledger).clone();
        self.for_topics(|key, checker| {
            checker.falls_back(expected.remove(key).unwrap_or_default(), self.store().view(key));
            checker.unsettle(self.cluster.now());
        });
        true
    }

    /// Returns whether the faults have stopped, so that everything must end.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Relaxed)
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Relaxed);
        // A slow link is no fault, and remains.
        let bandwidth = self.settings.bandwidth;
        self.change_network_state(|network_state| {
            *network_state = NetworkState { bandwidth, ..NetworkState::default() };
        });
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.checkers).values().any(|checker| lock(checker).found.is_some()) || self.workload.has_failed()
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn known_runs(&self, key: &TopicKey, id: &JobId, fence: Fence) {
        let mut known_runs = lock(&self.known_runs);
        known_runs.push_back((key.clone(), id.clone(), fence));
        if known_runs.len() > 12 {
            known_runs.pop_front();
        }
    }

    /// Returns whether a fault with this name happens in this run, and records it.
    pub(super) fn happens(&self, name: impl FnOnce() -> String, what: impl FnOnce() -> String) -> bool {
        let name = name();
        let happens = self.settings.only_faults.as_ref().is_none_or(|only| only.contains(&name));
        if happens {
            let at = self.cluster.now();
            lock(&self.injected).push(InjectedFault { name, at, what: what() });
        }
        happens
    }

    /// The random source of a run of a version, and the number of that run; the first is 1.
    pub(super) fn random_of_run(&self, version: u64) -> (RandomSource, u64) {
        let mut runs = lock(&self.runs);
        let run = runs.entry(version).or_default();
        *run += 1;
        (self.cluster.random("run", version.wrapping_mul(1 << 16) + *run), *run)
    }

    /// Breaks the reference cycles of this simulation; otherwise no run would ever be freed.
    pub(super) fn end(&self) {
        self.cluster.end();
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        let callers = std::mem::take(&mut *lock(&self.callers));
        let subscribers = std::mem::take(&mut *lock(&self.subscribers));
        drop((nodes, callers, subscribers));
    }

    /// Starts a node.
    pub(super) fn start_node(self: &Arc<Self>) {
        Arc::clone(&self.workload).start_node(self);
    }

    /// Writes an event into the log, and into the account where one is kept.
    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        if self.workload.keeps_account() {
            let text = text();
            self.workload.account(self.cluster.now(), text.clone());
            self.cluster.log(|| text);
        } else {
            self.cluster.log(text);
        }
    }

    pub(super) fn fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }
}

pub(super) fn key(topic: &str) -> TopicKey {
    let app = AppName::new("sim").expect("it is a good name");
    TopicKey { app, topic: TopicName::new(topic).expect("it is a good name") }
}

/// The checker of a topic of dq's own workload.
fn checker(settings: &RunSettings) -> Checker {
    let mut checker = Checker::of(settings.timeout);
    checker.lookahead = settings.lookahead;
    checker.group_limit = settings.groups;
    checker.group_burst = settings.group_burst;
    checker.node = settings.node.clone();
    checker.is_calm = settings.profile == Profile::Calm;
    checker.is_slow = settings.profile == Profile::Large;
    checker.only_jobs_crash = settings.profile == Profile::Killers;
    checker.caps = Some(Caps { permits: settings.concurrency, ..CAPS });
    checker.acks_on_claim = settings.profile == Profile::Claim;
    checker
}
