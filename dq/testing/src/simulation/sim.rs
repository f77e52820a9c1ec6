//! One simulation: the store, the processes, and what is known of the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::dice::Dice;
use super::judge::{Caps, Court, Did, Ghost};
use super::network::Weather;
use super::nodes::{CAPS, NodeAt};
use super::process::Process;
use super::store::Ear;
use super::terms::{Profile, Terms};
use super::users::Program;
use super::world::{JumpyClock, World, lock};
use dq::config::TopicSettings;
use dq::environment::StoreClock as _;
use dq::job::{AppName, Fence, JobId, NodeId, ProducerId, TopicKey, TopicName};
use dq::provider::Provider;
use dq::store::memory::{MemoryStore, Snapshot};
use dq::store::{Numbered, Signal, Store as _, WithdrawVerb, Withdrawal};
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
    pub(super) world: Arc<World>,
    pub(super) clock: Arc<JumpyClock>,
    pub(super) store: MemoryStore,
    pub(super) key: TopicKey,
    terms: Terms,
    weather: Mutex<Weather>,
    court: Arc<Mutex<Court>>,
    /// What is known of each topic; that of `key` is `court`.
    courts: Mutex<BTreeMap<TopicKey, Arc<Mutex<Court>>>>,
    pub(super) ears: Mutex<Vec<Arc<Ear>>>,
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
        f.debug_struct("Sim").field("world", &self.world).finish_non_exhaustive()
    }
}

impl Sim {
    pub(super) fn new(world: &Arc<World>, terms: Terms) -> Arc<Self> {
        let clock = Arc::new(JumpyClock::new(world));
        let app = AppName::new("sim").expect("it is a good name");
        let topic = TopicName::new("t").expect("it is a good name");
        let key = TopicKey { app, topic };
        let mut court = Court::of(terms.timeout);
        // The experiment with kills counts the DEAD at its end.
        let dead_kept = if terms.kills.is_some() { TopicSettings::default().dead_kept } else { CAPS.dead_kept };
        court.is_calm = terms.profile == Profile::Calm;
        court.caps = Some(Caps { permits: terms.concurrency, dead_kept, ..CAPS });
        court.acks_on_claim = terms.profile == Profile::Claim;
        let court = Arc::new(Mutex::new(court));
        let courts = BTreeMap::from([(key.clone(), Arc::clone(&court))]);
        let weather = Weather { failing: terms.failing, ..Weather::default() };
        Arc::new(Self {
            world: Arc::clone(world),
            store: MemoryStore::new(clock.clone()),
            clock,
            key,
            terms,
            weather: Mutex::new(weather),
            court,
            courts: Mutex::new(courts),
            ears: Mutex::default(),
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

    pub(super) fn weather(&self) -> Weather {
        *lock(&self.weather)
    }

    pub(super) fn change_weather(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut lock(&self.weather));
    }

    pub(super) fn court(&self) -> MutexGuard<'_, Court> {
        lock(&self.court)
    }

    /// What is known of a topic.
    pub(super) fn court_of(&self, key: &TopicKey) -> Arc<Mutex<Court>> {
        let new = || Arc::new(Mutex::new(Court::of(self.terms.timeout)));
        Arc::clone(lock(&self.courts).entry(key.clone()).or_insert_with(new))
    }

    /// Does this with what is known of each topic.
    pub(super) fn for_courts(&self, mut act: impl FnMut(&mut Court)) {
        self.for_topics(|_, court| act(court));
    }

    /// The same, with its name.
    pub(super) fn for_topics(&self, mut act: impl FnMut(&TopicKey, &mut Court)) {
        lock(&self.courts).iter().for_each(|(key, court)| act(key, &mut lock(court)));
    }

    /// The faults have stopped; everything must end now.
    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Relaxed)
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Relaxed);
        self.change_weather(|weather| *weather = Weather::default());
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.courts).values().any(|court| lock(court).found.is_some()) || self.has_failed()
    }

    /// The judge looks at what a step did in a topic.
    #[expect(clippy::needless_pass_by_value, reason = "a step that was judged is over")]
    pub(super) fn judge(&self, key: &TopicKey, did: Did) {
        let micros = self.clock.micros();
        let court = self.court_of(key);
        let mut court = lock(&court);
        if let Did::Reclaim { from, seen, watched, charged } = &did {
            if *charged {
                self.judge_reclaim(&mut court, from);
            }
            court.look_at_patience(from, *seen, *watched, micros);
        }
        if self.terms.kills.is_some() {
            court.look_at_part(&did, &self.store, key, micros);
        } else {
            let view = self.store.view(key);
            self.narrate(key, &did, &court, &view);
            court.look(&did, view, micros);
            self.judge_casts(&mut court, micros);
        }
        self.judge_permits(&mut court, micros);
        if self.is_endless(&court) {
            court.bad(format!("ENDLESS: {MOST_STEPS} steps, and the nodes go on asking"));
        }
        drop(court);
        self.tempt(key, &did);
    }

    /// Whether nodes ask the store without end. Users' programs, and the experiment with kills, may have many jobs.
    fn is_endless(&self, court: &Court) -> bool {
        court.steps > MOST_STEPS && self.terms.kills.is_none() && self.program.get().is_none()
    }

    pub(super) fn after_step(self: &Arc<Self>) {
        self.hand_out_signals();
        self.judge_nodes();
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

    pub(super) fn loses_signal(&self, signal: &Signal, process: &Process, number: u64, dice: &Dice) -> bool {
        let lossy = !self.is_calm() && self.terms.failing > 0.0 && dice.chance(0.05);
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
            self.court().before.jobs.iter().filter(|(_, job)| holds(job, node)).map(|(id, _)| id.clone()).collect();
        let gone = held.into_iter().filter(|id| back.jobs.get(id).is_some_and(|job| !holds(job, node)));
        let items = gone.map(|id| Withdrawal { verb: WithdrawVerb::Delete, id, fence: None }).collect();
        let producer = self.store.producer(&self.key, &ProducerId::new("between"));
        drop(producer.withdraw(Numbered { number: self.next_number(), items }));
    }

    /// Whether a fault of that name happens in this run; if so it is noted.
    pub(super) fn happens(&self, name: impl FnOnce() -> String, what: impl FnOnce() -> String) -> bool {
        let name = name();
        let happens = self.terms.only_faults.as_ref().is_none_or(|only| only.contains(&name));
        if happens {
            let at = self.world.now();
            lock(&self.struck).push(Struck { name, at, what: what() });
        }
        happens
    }

    /// The dice of a run of a version, and which run of it this is: 1 is the first.
    pub(super) fn dice_of_run(&self, version: u64) -> (Dice, u64) {
        let mut runs = lock(&self.runs);
        let run = runs.entry(version).or_default();
        *run += 1;
        (self.world.dice("run", version.wrapping_mul(1 << 16) + *run), *run)
    }

    /// Lets go of all that knows this simulation, and that it knows: else no run would ever be freed.
    pub(super) fn end(&self) {
        self.world.end();
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        let callers = std::mem::take(&mut *lock(&self.callers));
        let ears = std::mem::take(&mut *lock(&self.ears));
        drop((nodes, callers, ears));
    }

    pub(super) fn fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }
}

fn holds(job: &JobView, node: &NodeId) -> bool {
    job.row.as_ref().is_some_and(|row| row.node == *node)
}
