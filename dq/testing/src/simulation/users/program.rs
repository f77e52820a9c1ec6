//! A user's program in one run: what its nodes are, which faults are left, and its account.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use futures_util::FutureExt;

use super::super::cluster::ClusterState;
use super::super::process::Process;
use super::super::profile::Fault;
use super::super::random::RandomSource;
use super::super::sim::Sim;
use super::super::sync::lock;
use super::faults::PlannedFault;
use super::only::How;
use super::panics::Print;
use super::simulation::Simulation;
use super::trace::{Named, Trace, Usual};
use super::versions::Versions;
use dq::context::ContextFactory;
use dq::job::{AppName, NodeId, TopicKey};
use dq::store::Store as _;

/// The app of all simulated programs.
pub(super) const APP: &str = "simulation";

/// The name of the process that does the work.
pub(super) const WORK: &str = "work";

/// A fault that waits for a step of a handler: its start, where it resumes after an `.await`, or its return.
#[derive(Debug)]
pub(super) struct AtStep {
    pub(super) fault: Fault,
    /// How many steps of the run come before it. If the run returns earlier, the fault happens at its return.
    pub(super) left: u64,
    /// The run: the first one that makes a step.
    pub(super) run: Option<u64>,
    /// The random source of the fault.
    pub(super) random: RandomSource,
}

/// The faults that wait for a process; each counts down to its moment.
#[derive(Debug, Default)]
pub(super) struct PendingFaults {
    /// At a step of a handler.
    pub(super) at_step: Option<AtStep>,
    /// At a request.
    pub(super) connection: Option<u64>,
}

type OnNode = Box<dyn Fn(ContextFactory) -> ContextFactory + Send + Sync>;

/// A user's program in one run.
pub(super) struct Program {
    sim: OnceLock<Weak<Sim>>,
    node: OnNode,
    pub(super) planned_faults: Vec<PlannedFault>,
    /// How many faults are left.
    pub(super) left: AtomicU64,
    /// The probability that an occasion brings a fault.
    pub(super) eagerness: f64,
    /// How long a stopping node lets its handlers go on, in ms.
    pub(super) grace_millis: AtomicU64,
    pub(super) versions: Versions,
    pub(super) trace: Option<Trace>,
    wrong: Mutex<Option<String>>,
    work_done: AtomicBool,
    pub(super) pending_faults: Mutex<BTreeMap<String, PendingFaults>>,
    /// How often each job was an occasion for a fault.
    pub(super) occasions: Mutex<BTreeMap<String, u64>>,
    /// The work adds only these jobs; `None`: all.
    pub(super) only_jobs: Option<BTreeSet<String>>,
    /// The jobs that the work added.
    pub(super) added: Mutex<BTreeSet<String>>,
    /// The nodes whose handlers have spawned tasks.
    pub(super) spawners: Mutex<BTreeSet<String>>,
    /// Whether panics of user code are printed.
    pub(super) print: Print,
    /// Which listener of which node received which broadcast.
    pub(super) received: Mutex<BTreeSet<(String, &'static str, Named, u64)>>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("planned_faults", &self.planned_faults)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Program {
    pub(super) fn new<S>(of: &Simulation<S>, state: &S, cluster: &ClusterState, how: How<'_>) -> Arc<Self>
    where
        S: Clone + Send + Sync + 'static,
    {
        let node = of.node.clone().expect("set what a node is: `.node(|factory, state| factory.listener::<..>())`");
        let (state, found) = (state.clone(), of.found_listeners);
        let node: OnNode =
            Box::new(move |factory| node(if found { factory } else { factory.without_inventory() }, state.clone()));
        let planned_faults = of.faults.planned_faults();
        let most = of.faults.draw(cluster);
        Arc::new(Self {
            sim: OnceLock::new(),
            node,
            left: AtomicU64::new(if planned_faults.is_empty() { 0 } else { most }),
            planned_faults,
            eagerness: cluster.pick(&[0.3, 0.6, 1.0]),
            grace_millis: AtomicU64::new(0),
            versions: Versions::default(),
            trace: how.traced.then(Trace::default),
            wrong: Mutex::default(),
            work_done: AtomicBool::new(false),
            pending_faults: Mutex::default(),
            occasions: Mutex::default(),
            only_jobs: how.only.jobs.clone(),
            added: Mutex::default(),
            spawners: Mutex::default(),
            print: how.print,
            received: Mutex::default(),
        })
    }

    /// The factory of a node, as the user configured it.
    pub(super) fn factory(&self) -> ContextFactory {
        (self.node)(ContextFactory::new(APP))
    }

    pub(super) fn sim(&self) -> Option<Arc<Sim>> {
        self.sim.get().and_then(Weak::upgrade)
    }

    /// Records a violation that the checker does not see; the first one counts.
    pub(super) fn fail(&self, what: String) {
        lock(&self.wrong).get_or_insert(what);
    }

    /// Returns what is wrong: what the checker says, or what the program says.
    pub(super) fn wrong(&self, sim: &Sim) -> Option<String> {
        let mut broken = None;
        sim.for_checkers(|checker| broken = broken.take().or_else(|| checker.found.clone()));
        let broken = broken.map(|what| format!("dq broke one of its own rules, please report this: {what}"));
        broken.or_else(|| lock(&self.wrong).clone())
    }

    pub(super) fn has_failed(&self) -> bool {
        lock(&self.wrong).is_some()
    }

    /// Notes the run of this program.
    pub(super) fn begin(&self, sim: &Arc<Sim>) {
        let fresh = self.sim.set(Arc::downgrade(sim)).is_ok();
        debug_assert!(fresh, "a program has one run");
    }

    /// Writes an event into the log, and into the account of the job.
    pub(super) fn note(&self, sim: &Sim, job: Option<Named>, usual: Option<Usual>, text: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            let text = text();
            trace.push(sim.cluster.now(), job, usual, text.clone());
            sim.cluster.log(|| text);
        } else {
            sim.cluster.log(text);
        }
    }

    pub(super) fn work_is_done(&self) {
        self.work_done.store(true, Relaxed);
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
        let topics = sim.store().topics(&app).now_or_never()?.unwrap_or_default();
        let left = topics.into_iter().filter_map(|topic| {
            let key = TopicKey { app: app.clone(), topic };
            let counts = sim.store().counts(&key).now_or_never()?.ok()?;
            let (waiting, running, broadcasts) = (counts.delayed, counts.running, counts.broadcasts);
            (waiting + running + broadcasts > 0)
                .then(|| format!("{}: {waiting} jobs wait, {running} run, {broadcasts} broadcasts wait", key.topic))
        });
        let left: Vec<_> = left.collect();
        (!left.is_empty()).then(|| left.join("; "))
    }
}

/// The node that a listener belongs to.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) sim: Arc<Sim>,
    pub(super) program: Arc<Program>,
    pub(super) process: Arc<Process>,
    pub(super) node: NodeId,
}
