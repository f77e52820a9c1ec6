//! A user's program in one run: what its nodes are, which faults are left, and what is told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use futures_util::FutureExt;

use super::super::checker::Ghost;
use super::super::cluster::{ClusterState, lock};
use super::super::random::RandomSource;
use super::super::sim::Sim;
use super::super::terms::Fault;
use super::faults::Blow;
use super::panics::Print;
use super::play::How;
use super::simulation::Simulation;
use super::trace::{Named, Trace, Usual};
use super::versions::Versions;
use dq::context::ContextFactory;
use dq::job::{AppName, ProducerId, TopicKey};
use dq::store::memory::Snapshot;
use dq::store::{NewJob, Numbered, Store as _};

/// The app of all simulated programs.
pub(super) const APP: &str = "simulation";

/// The name of the process that does the work.
pub(super) const WORK: &str = "work";

/// A fault that waits for a step of a handler: its start, where it goes on after an `.await`, or its return.
#[derive(Debug)]
pub(super) struct AtStep {
    pub(super) fault: Fault,
    /// How many steps of the run still come before; a run that returns earlier has it at its return.
    pub(super) left: u64,
    /// The run: the first that makes a step.
    pub(super) run: Option<u64>,
    /// What decides about it.
    pub(super) random: RandomSource,
}

/// What waits to happen to a process; each counts down to its moment.
#[derive(Debug, Default)]
pub(super) struct Arms {
    /// At a step of a handler.
    pub(super) at_step: Option<AtStep>,
    /// At a request.
    pub(super) wire: Option<u64>,
}

/// An earlier state of the store, and what was known of it.
pub(super) type Kept = (Snapshot, Vec<(TopicKey, Ghost)>);

type OnNode = Box<dyn Fn(ContextFactory) -> ContextFactory + Send + Sync>;

/// See the module.
pub(in crate::simulation) struct Program {
    sim: OnceLock<Weak<Sim>>,
    node: OnNode,
    pub(super) blows: Vec<Blow>,
    /// How many faults there still are.
    pub(super) left: AtomicU64,
    /// How likely an occasion is taken.
    pub(super) eagerness: f64,
    /// How long a node that stops lets its handlers go on.
    pub(super) grace_millis: AtomicU64,
    pub(super) versions: Versions,
    pub(super) trace: Option<Trace>,
    wrong: Mutex<Option<String>>,
    work_done: AtomicBool,
    pub(super) arms: Mutex<BTreeMap<String, Arms>>,
    /// How often each job was an occasion for a fault.
    pub(super) occasions: Mutex<BTreeMap<String, u64>>,
    /// Only these jobs are added by the work; else all.
    pub(super) only_jobs: Option<BTreeSet<String>>,
    /// The jobs that the work added.
    pub(super) added: Mutex<BTreeSet<String>>,
    /// The nodes whose handlers have spawned tasks.
    pub(super) spawners: Mutex<BTreeSet<String>>,
    /// Whether panics of the user's code are printed.
    pub(super) print: Print,
    /// Which listener of which node heard which broadcast.
    pub(super) received: Mutex<BTreeSet<(String, &'static str, Named, u64)>>,
    pub(super) kept: Mutex<Option<Kept>>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("blows", &self.blows).field("left", &self.left).finish_non_exhaustive()
    }
}

impl Program {
    pub(super) fn new<S>(of: &Simulation<S>, state: &S, cluster: &ClusterState, how: How<'_>) -> Arc<Self>
    where
        S: Clone + Send + Sync + 'static,
    {
        let node = of.node.clone().expect("say what a node is: `.node(|factory, state| factory.listener::<..>())`");
        let (state, found) = (state.clone(), of.found_listeners);
        let node: OnNode =
            Box::new(move |factory| node(if found { factory } else { factory.without_inventory() }, state.clone()));
        let blows = of.faults.blows();
        let most = of.faults.draw(cluster);
        Arc::new(Self {
            sim: OnceLock::new(),
            node,
            left: AtomicU64::new(if blows.is_empty() { 0 } else { most }),
            blows,
            eagerness: cluster.pick(&[0.3, 0.6, 1.0]),
            grace_millis: AtomicU64::new(0),
            versions: Versions::default(),
            trace: how.told.then(Trace::default),
            wrong: Mutex::default(),
            work_done: AtomicBool::new(false),
            arms: Mutex::default(),
            occasions: Mutex::default(),
            only_jobs: how.only.jobs.clone(),
            added: Mutex::default(),
            spawners: Mutex::default(),
            print: how.print,
            received: Mutex::default(),
            kept: Mutex::default(),
        })
    }

    /// The factory of a node, as the user wants it.
    pub(super) fn factory(&self) -> ContextFactory {
        (self.node)(ContextFactory::new(APP))
    }

    pub(super) fn sim(&self) -> Option<Arc<Sim>> {
        self.sim.get().and_then(Weak::upgrade)
    }

    /// Something is wrong that the judge does not see; the first holds.
    pub(super) fn fail(&self, what: String) {
        lock(&self.wrong).get_or_insert(what);
    }

    pub(super) fn work_is_done(&self) {
        self.work_done.store(true, Relaxed);
    }

    /// Gives the jobs of a batch their versions.
    pub(in crate::simulation) fn stamp(&self, producer: &ProducerId, batch: &mut Numbered<NewJob>) {
        self.versions.stamp(producer, batch);
    }

    pub(super) fn jobs(&self) -> u64 {
        self.versions.given()
    }

    pub(super) fn account(&self) -> String {
        self.trace.as_ref().map(Trace::account).unwrap_or_default()
    }

    /// What still waits or runs.
    pub(super) fn what_is_left(&self, sim: &Sim) -> Option<String> {
        if !self.work_done.load(Relaxed) {
            return Some("the work is not done".into());
        }
        let app = AppName::new(APP).expect("it is a good name");
        let topics = sim.store.topics(&app).now_or_never()?.unwrap_or_default();
        let left = topics.into_iter().filter_map(|topic| {
            let key = TopicKey { app: app.clone(), topic };
            let counts = sim.store.counts(&key).now_or_never()?.ok()?;
            let (waiting, running, broadcasts) = (counts.delayed, counts.running, counts.broadcasts);
            (waiting + running + broadcasts > 0)
                .then(|| format!("{}: {waiting} jobs wait, {running} run, {broadcasts} broadcasts wait", key.topic))
        });
        let left: Vec<_> = left.collect();
        (!left.is_empty()).then(|| left.join("; "))
    }
}

impl Sim {
    /// From now on this is a run of a user's program.
    pub(super) fn begin(self: &Arc<Self>, program: &Arc<Program>) {
        let sim = Arc::downgrade(self);
        let fresh = program.sim.set(sim).is_ok() && self.program.set(Arc::clone(program)).is_ok();
        debug_assert!(fresh, "a run has one program");
    }

    /// What is wrong, by the judge or else.
    pub(super) fn wrong(&self, program: &Program) -> Option<String> {
        let mut broken = None;
        self.for_checkers(|checker| broken = broken.take().or_else(|| checker.found.clone()));
        let broken = broken.map(|what| format!("dq broke its own rules, please report this: {what}"));
        broken.or_else(|| lock(&program.wrong).clone())
    }

    /// Whether a program's run is over before its time.
    pub(in crate::simulation) fn has_failed(&self) -> bool {
        self.program.get().is_some_and(|program| lock(&program.wrong).is_some())
    }

    /// Tells of something: in the log, and in the account of a program.
    pub(in crate::simulation) fn tell(&self, job: Option<Named>, text: impl FnOnce() -> String) {
        self.tell_usual(job, None, text);
    }

    /// The same, of what is perhaps usual.
    pub(super) fn tell_usual(&self, job: Option<Named>, usual: Option<Usual>, text: impl FnOnce() -> String) {
        let trace = self.program.get().and_then(|program| program.trace.as_ref());
        if let Some(trace) = trace {
            let text = text();
            trace.tell(self.cluster.now(), job, usual, text.clone());
            self.cluster.say(|| text);
        } else {
            self.cluster.say(text);
        }
    }
}
