//! One simulation: the store, the processes, and what is known of the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::checker::{Caps, Checker, Did, Ghost};
use super::cluster::{ClusterState, JumpyClock, lock};
use super::network::NetworkState;
use super::nodes::{CAPS, NodeAt};
use super::process::Process;
use super::random::RandomSource;
use super::store::Subscriber;
use super::terms::{Profile, Terms};
use super::users::Program;
use dq::config::TopicSettings;
use dq::environment::StoreClock as _;
use dq::job::{AppName, Fence, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::memory::{MemoryStore, Snapshot};
use dq::store::{Command, CommandKind, Numbered, Signal, Store as _};
use dq::testing::seam::JobView;

/// A fault that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Struck {
    /// Its name, the same in every run of the seed.
    pub name: String,
    /// When, in µs of simulated time.
    pub at: u64,
    /// What it was.
    pub what: String,
}

/// The most steps of a run: a hundred times as many as most have.
const MOST_STEPS: u64 = 60_000;

/// See the module.
pub(super) struct Sim {
    pub(super) cluster: Arc<ClusterState>,
    pub(super) clock: Arc<JumpyClock>,
    pub(super) store: MemoryStore,
    pub(super) key: TopicKey,
    terms: Terms,
    network_state: Mutex<NetworkState>,
    checker: Arc<Mutex<Checker>>,
    /// What is known of each topic; that of `key` is `checker`.
    checkers: Mutex<BTreeMap<TopicKey, Arc<Mutex<Checker>>>>,
    pub(super) subscribers: Mutex<Vec<Arc<Subscriber>>>,
    pub(super) nodes: Mutex<Vec<Arc<NodeAt>>>,
    pub(super) callers: Mutex<Vec<(Arc<Process>, Provider)>>,
    pub(super) snapshot: Mutex<Option<(Snapshot, Ghost)>>,
    /// Runs that a webhook could name.
    pub(super) overheard: Mutex<VecDeque<(JobId, Fence)>>,
    hidden: Mutex<BTreeSet<NodeId>>,
    calm: AtomicBool,
    pub(super) numbers: AtomicU64,
    pub(super) versions: AtomicU64,
    pub(super) names: AtomicU64,
    /// Occasions for faults, and acts of callers.
    pub(super) occasions: AtomicU64,
    pub(super) acts: AtomicU64,
    pub(super) struck: Mutex<Vec<Struck>>,
    pub(super) acted: Mutex<Vec<u64>>,
    runs: Mutex<BTreeMap<u64, u64>>,
    pub(super) faults: AtomicU64,
    pub(super) requests: Mutex<BTreeMap<&'static str, u64>>,
    /// The user's program, where it is one that runs.
    pub(super) program: OnceLock<Arc<Program>>,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("world", &self.cluster).finish_non_exhaustive()
    }
}

impl Sim {
    pub(super) fn new(cluster: &Arc<ClusterState>, terms: Terms) -> Arc<Self> {
        let clock = Arc::new(JumpyClock::new(cluster));
        let app = AppName::new("sim").expect("it is a good name");
        let topic = TopicName::new("t").expect("it is a good name");
        let key = TopicKey { app, topic };
        let mut checker = Checker::of(terms.timeout);
        // The experiment with kills counts the DEAD at its end.
        let dead_kept = if terms.kills.is_some() { TopicSettings::default().dead_kept } else { CAPS.dead_kept };
        checker.is_calm = terms.profile == Profile::Calm;
        checker.caps = Some(Caps { permits: terms.concurrency, dead_kept, ..CAPS });
        checker.acks_on_claim = terms.profile == Profile::Claim;
        let checker = Arc::new(Mutex::new(checker));
        let checkers = BTreeMap::from([(key.clone(), Arc::clone(&checker))]);
        let network_state = NetworkState { failing: terms.failing, ..NetworkState::default() };
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            store: MemoryStore::new(clock.clone()),
            clock,
            key,
            terms,
            network_state: Mutex::new(network_state),
            checker,
            checkers: Mutex::new(checkers),
            subscribers: Mutex::default(),
            nodes: Mutex::default(),
            callers: Mutex::default(),
            snapshot: Mutex::default(),
            overheard: Mutex::default(),
            hidden: Mutex::default(),
            calm: AtomicBool::new(false),
            numbers: AtomicU64::new(0),
            versions: AtomicU64::new(0),
            names: AtomicU64::new(0),
            occasions: AtomicU64::new(0),
            acts: AtomicU64::new(0),
            struck: Mutex::default(),
            acted: Mutex::default(),
            runs: Mutex::default(),
            faults: AtomicU64::new(0),
            requests: Mutex::default(),
            program: OnceLock::new(),
        })
    }

    pub(super) const fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) fn network_state(&self) -> NetworkState {
        *lock(&self.network_state)
    }

    pub(super) fn change_network_state(&self, change: impl FnOnce(&mut NetworkState)) {
        change(&mut lock(&self.network_state));
    }

    pub(super) fn checker(&self) -> MutexGuard<'_, Checker> {
        lock(&self.checker)
    }

    /// What is known of a topic.
    pub(super) fn checker_of(&self, key: &TopicKey) -> Arc<Mutex<Checker>> {
        let new = || Arc::new(Mutex::new(Checker::of(self.terms.timeout)));
        Arc::clone(lock(&self.checkers).entry(key.clone()).or_insert_with(new))
    }

    /// Does this with what is known of each topic.
    pub(super) fn for_checkers(&self, mut act: impl FnMut(&mut Checker)) {
        self.for_topics(|_, checker| act(checker));
    }

    /// The same, with its name.
    pub(super) fn for_topics(&self, mut act: impl FnMut(&TopicKey, &mut Checker)) {
        lock(&self.checkers).iter().for_each(|(key, checker)| act(key, &mut lock(checker)));
    }

    /// The faults have stopped; everything must end now.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Relaxed)
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Relaxed);
        self.change_network_state(|network_state| *network_state = NetworkState::default());
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.checkers).values().any(|checker| lock(checker).found.is_some()) || self.has_failed()
    }

    /// The judge looks at what a step did in a topic.
    #[expect(clippy::needless_pass_by_value, reason = "a step that was judged is over")]
    pub(super) fn check(&self, key: &TopicKey, did: Did) {
        let micros = self.clock.micros();
        let checker = self.checker_of(key);
        let mut checker = lock(&checker);
        if let Did::Reclaim { from, seen, watched, charged } = &did {
            if *charged {
                self.check_reclaim(&mut checker, from);
            }
            checker.check_call_timeouts(from, *seen, *watched, micros);
        }
        if self.terms.kills.is_some() {
            checker.look_at_part(&did, &self.store, key, micros);
        } else {
            let view = self.store.view(key);
            self.narrate(key, &did, &checker, &view);
            checker.query(&did, view, micros);
            self.check_broadcasts(&mut checker, micros);
        }
        self.check_permits(&mut checker, micros);
        if self.is_endless(&checker) {
            checker.bad(format!("ENDLESS: {MOST_STEPS} steps, and the nodes go on asking"));
        }
        drop(checker);
        self.tempt(key, &did);
    }

    /// Whether nodes ask the store without end. Users' programs, and the experiment with kills, may have many jobs.
    fn is_endless(&self, checker: &Checker) -> bool {
        checker.steps > MOST_STEPS && self.terms.kills.is_none() && self.program.get().is_none()
    }

    pub(super) fn after_step(self: &Arc<Self>) {
        self.hand_out_signals();
        self.check_nodes();
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn hide(&self, node: &NodeId) {
        lock(&self.hidden).insert(node.clone());
    }

    pub(super) fn is_hidden(&self, node: &NodeId) -> bool {
        lock(&self.hidden).contains(node)
    }

    pub(super) fn loses_signal(&self, signal: &Signal, process: &Process, number: u64, random: &RandomSource) -> bool {
        let lossy = !self.is_calm() && self.terms.failing > 0.0 && random.chance(0.05);
        let lost = lossy
            && self.happens(
                || format!("{}~{number}", process.name),
                || format!("{} does not hear {signal:?}", process.name),
            );
        lost || dq::testing::seam::without(23) && *signal == Signal::Due
    }

    pub(super) fn overheard(&self, id: &JobId, fence: Fence) {
        let mut overheard = lock(&self.overheard);
        overheard.push_back((id.clone(), fence));
        if overheard.len() > 12 {
            overheard.pop_front();
        }
    }

    /// Without rule 2 a reclaim is two steps: first the rows go, and the jobs are put back when the reclaimer comes again.
    pub(super) fn split_reclaim(self: &Sim, node: &NodeId) {
        let back = self.store.view(&self.key);
        let held: Vec<_> =
            self.checker().before.jobs.iter().filter(|(_, job)| holds(job, node)).map(|(id, _)| id.clone()).collect();
        let gone = held.into_iter().filter(|id| back.jobs.get(id).is_some_and(|job| !holds(job, node)));
        let items = gone.map(|id| Command { verb: CommandKind::Delete, id, fence: None }).collect();
        let producer = self.store.producer(&self.key, &ProducerId::new("between"));
        drop(producer.command(Numbered { number: self.next_number(), items }));
    }

    /// Whether a fault of that name happens in this run; if so it is noted.
    pub(super) fn happens(&self, name: impl FnOnce() -> String, what: impl FnOnce() -> String) -> bool {
        let name = name();
        let happens = self.terms.only_faults.as_ref().is_none_or(|only| only.contains(&name));
        if happens {
            let at = self.cluster.now();
            lock(&self.struck).push(Struck { name, at, what: what() });
        }
        happens
    }

    /// The dice of a run of a version, and which run of it this is: 1 is the first.
    pub(super) fn random_of_run(&self, version: u64) -> (RandomSource, u64) {
        let mut runs = lock(&self.runs);
        let run = runs.entry(version).or_default();
        *run += 1;
        (self.cluster.random("run", version.wrapping_mul(1 << 16) + *run), *run)
    }

    /// Lets go of all that knows this simulation, and that it knows: else no run would ever be freed.
    pub(super) fn end(&self) {
        self.cluster.end();
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        let callers = std::mem::take(&mut *lock(&self.callers));
        let subscribers = std::mem::take(&mut *lock(&self.subscribers));
        drop((nodes, callers, subscribers));
    }

    pub(super) fn fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }
}

fn holds(job: &JobView, node: &NodeId) -> bool {
    job.row.as_ref().is_some_and(|row| row.node == *node)
}
