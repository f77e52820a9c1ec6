//! What a user writes: a simulation of their program.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::faults::Faults;
use super::report::Ended;
use super::verdict::Verdict;
use dq::context::ContextFactory;
use dq::provider::Provider;

/// How long a finding may take to be made smaller, unless the user says otherwise.
const SHRINKS_FOR: Duration = Duration::from_secs(30);

type Make<S> = Arc<dyn Fn() -> S + Send + Sync>;
type OnNode<S> = Arc<dyn Fn(ContextFactory, S) -> ContextFactory + Send + Sync>;
type Work<S> = Arc<dyn Fn(Provider, S) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
type Check<S> = Arc<dyn Fn(S, &Ended) -> Result<(), String> + Send + Sync>;

/// Simulates a program: its own listeners on several nodes, in virtual time, with faults, once for each seed.
///
/// `state` makes what outlives the nodes: it stands for the user's database, mail server, bank. It is called anew for each
/// run, and every node, the work and the check get a clone of what it gave (an `Arc`, mostly).
///
/// ```
/// # use std::collections::BTreeMap;
/// # use std::sync::{Arc, Mutex};
/// # use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "charge", delay = "1m")]
/// struct Charge { #[job(id)] order: u64 }
///
/// #[derive(Default)]
/// struct Bank(Mutex<BTreeMap<u64, u64>>);            // how often each order was charged
///
/// #[delay_listener]
/// async fn charge(job: Job<Charge>, bank: &Arc<Bank>) -> Result<(), JobError> {
///     bank.0.lock().unwrap().insert(job.order, 1);   // `+= 1` would charge again when the job runs again
///     Ok(())
/// }
///
/// // In your tests: #[test] fn every_order_is_charged_once()
/// dq_testing::simulate(|| Arc::new(Bank::default()))
///     .node(|factory, bank| factory.provide(bank).listener::<charge>())
///     .work(|jobs, _| async move {
///         while let Err(unknown) = jobs.add(Charge { order: 7 }).keep_existing().await {
///             println!("not sure, once more: {unknown}");
///         }
///     })
///     .check(|bank, _| match bank.0.lock().unwrap().get(&7) {
///         Some(1) => Ok(()),
///         other => Err(format!("order 7 was charged {other:?} times")),
///     })
///     .seeds(0..20)
///     .run();
/// ```
///
/// `docs/internals/simulation.md` says which bugs it finds, what an account of one looks like, and what makes a run differ from itself.
pub fn simulate<S: Clone + Send + Sync + 'static>(state: impl Fn() -> S + Send + Sync + 'static) -> Simulation<S> {
    Simulation {
        state: Arc::new(state),
        node: None,
        work: Arc::new(|_, _| std::future::ready(Ok(())).boxed()),
        check: Arc::new(|_, _| Ok(())),
        seeds: 0..100,
        faults: Faults::default(),
        nodes: 2,
        longest: Duration::from_secs(24 * 60 * 60),
        ends_after: None,
        found_listeners: false,
        shrinks_for: SHRINKS_FOR,
    }
}

/// A simulation of a program, from [`simulate`]. It does nothing before [`run`](Self::run).
#[must_use = "nothing is simulated before `.run()`"]
pub struct Simulation<S> {
    pub(super) state: Make<S>,
    pub(super) node: Option<OnNode<S>>,
    pub(super) work: Work<S>,
    pub(super) check: Check<S>,
    pub(super) seeds: Range<u64>,
    pub(super) faults: Faults,
    pub(super) nodes: u64,
    pub(super) longest: Duration,
    pub(super) ends_after: Option<Duration>,
    pub(super) found_listeners: bool,
    pub(super) shrinks_for: Duration,
}

impl<S> fmt::Debug for Simulation<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, faults, nodes, longest, .. } = self;
        let mut shown = f.debug_struct("Simulation");
        shown.field("seeds", seeds).field("faults", faults).field("nodes", nodes).field("longest", longest);
        shown.finish_non_exhaustive()
    }
}

impl<S: Clone + Send + Sync + 'static> Simulation<S> {
    /// What each node is: its listeners, what they need, settings. Called whenever a node starts, also in place of one that
    /// died. Store, clock and variables are the simulation's. Required.
    ///
    /// As in the [`Harness`](dq::testing::Harness) only listeners that are named here run, a function by its name; see
    /// [`found_listeners`](Self::found_listeners).
    pub fn node(mut self, node: impl Fn(ContextFactory, S) -> ContextFactory + Send + Sync + 'static) -> Self {
        self.node = Some(Arc::new(node));
        self
    }

    /// Runs every annotated listener that is linked, as a program does: all that it needs must be provided. Default: those
    /// that [`node`](Self::node) names.
    pub const fn found_listeners(mut self) -> Self {
        self.found_listeners = true;
        self
    }

    /// What is done from outside: adds, deletes, acks of parked jobs, over simulated time (`tokio::time::sleep`). It runs in
    /// a process that never dies; its requests get lost like those of every other, so it meets `Unknown` and `NotAdded` as
    /// in life. An error or a panic of it is a finding. Default: nothing.
    pub fn work<F, V>(mut self, work: impl Fn(Provider, S) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = V> + Send + 'static,
        V: Verdict + 'static,
    {
        self.work = Arc::new(move |jobs, state| work(jobs, state).map(Verdict::verdict).boxed());
        self
    }

    /// What must hold at the end, when every job has ended. An error or a panic of it is a finding. Default: nothing but
    /// that dq keeps its own promises.
    pub fn check<V: Verdict>(mut self, check: impl Fn(S, &Ended) -> V + Send + Sync + 'static) -> Self {
        self.check = Arc::new(move |state, ended| check(state, ended).verdict());
        self
    }

    /// One run for each of these seeds, until one finds something. Default: `0..100`. The variable `DQ_SEED` outweighs it:
    /// then that seed alone is run, and its account is printed in any case.
    pub const fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Which faults happen. Default: [`Faults::default`].
    pub const fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// How many nodes there are. Default: 2; at least 1.
    pub const fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = if nodes == 0 { 1 } else { nodes };
        self
    }

    /// How long everything may take to end, in simulated time; jobs that wait or run then are a finding. Default: 24 h.
    /// A day in which nothing happens costs about 0.2 s, unoptimized 2 s.
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Ends each run at this simulated time, whatever still waits or runs: for jobs that come back for ever. Default: a
    /// run ends when the work is done, nothing waits or runs, and that has been so for a minute. Parked and DEAD jobs do
    /// not keep it from its end.
    pub const fn ends_after(mut self, time: Duration) -> Self {
        self.ends_after = Some(time);
        self
    }

    /// How long a finding may take to be made smaller: the same with fewer faults and nodes, smaller
    /// [choices](super::choose()) and fewer jobs, in at most 1,000 further runs. Default: 30 s; zero: it stays as it is.
    pub const fn shrinks_for(mut self, longest: Duration) -> Self {
        self.shrinks_for = longest;
        self
    }
}
