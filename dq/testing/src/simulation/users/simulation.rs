//! The builder with which users describe a simulation.

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

/// How long shrinking may take by default.
const SHRINKS_FOR: Duration = Duration::from_secs(30);

type Make<S> = Arc<dyn Fn() -> S + Send + Sync>;
type OnNode<S> = Arc<dyn Fn(ContextFactory, S) -> ContextFactory + Send + Sync>;
type Work<S> = Arc<dyn Fn(Provider, S) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
type Check<S> = Arc<dyn Fn(S, &Ended) -> Result<(), String> + Send + Sync>;

/// Simulates a program: its own listeners on several nodes, in virtual time, with faults, once for each seed.
///
/// `state` creates what outlives the nodes: it stands for the user's database, mail server or bank. It is called for each
/// run; every node, the work and the check get a clone of what it returned (usually an `Arc`).
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
/// `docs/guide/testing.md` says which bugs a simulation finds, how to read an account, and what makes a run differ from
/// itself.
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

/// A simulation of a program, built by [`simulate`]. It does nothing before [`run`](Self::run) or
/// [`try_run`](Self::try_run).
///
/// ```
/// use dq_testing::{Faults, simulate};
///
/// let simulation = simulate(|| ()).node(|factory, ()| factory.without_listeners()).nodes(3).seeds(0..2);
/// assert_eq!(simulation.faults(Faults::none()).run().seeds, 2);
/// ```
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
    /// Sets what each node is: its listeners, what they need, and settings. The closure is called whenever a node starts,
    /// also for a node that replaces a dead one. The simulation provides store, clock and variables. Required.
    ///
    /// As in the [`Harness`](dq::testing::Harness), only listeners that are named here run, a function by its name; see
    /// [`found_listeners`](Self::found_listeners).
    pub fn node(mut self, node: impl Fn(ContextFactory, S) -> ContextFactory + Send + Sync + 'static) -> Self {
        self.node = Some(Arc::new(node));
        self
    }

    /// Runs every annotated listener that is linked, as a program does, so everything that these need must be provided. By
    /// default only listeners that [`node`](Self::node) names run.
    pub const fn found_listeners(mut self) -> Self {
        self.found_listeners = true;
        self
    }

    /// Sets what happens from outside over simulated time (`tokio::time::sleep`): adds, deletes, acks of parked jobs. It
    /// runs in a process that never dies. Its requests get lost like all others, so it meets `Unknown` and `NotAdded`. An
    /// error or a panic is a finding. Default: nothing.
    pub fn work<F, V>(mut self, work: impl Fn(Provider, S) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = V> + Send + 'static,
        V: Verdict + 'static,
    {
        self.work = Arc::new(move |jobs, state| work(jobs, state).map(Verdict::verdict).boxed());
        self
    }

    /// Sets what must hold at the end of each run. An error or a panic is a finding. Default: only the rules of dq itself.
    pub fn check<V: Verdict>(mut self, check: impl Fn(S, &Ended) -> V + Send + Sync + 'static) -> Self {
        self.check = Arc::new(move |state, ended| check(state, ended).verdict());
        self
    }

    /// Sets the seeds, with one run each, until one finds something. Default: `0..100`. The variable `DQ_SEED` overrides
    /// this: then only that seed runs, and its account is always printed.
    pub const fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets which faults happen. Default: [`Faults::default`].
    pub const fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Sets the number of nodes at the start of a run; 0 means 1. Default: 2.
    pub const fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = if nodes == 0 { 1 } else { nodes };
        self
    }

    /// Sets how long a run may take, in simulated time. Jobs that still wait or run then are a finding. Default: 24 h. A
    /// day in which nothing happens costs about 0.2 s optimized and 2 s unoptimized.
    pub const fn longest(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Ends each run at this simulated time, even if jobs still wait or run: for jobs that repeat forever. By default a run
    /// ends when the work is done and nothing has waited or run for a minute; parked and DEAD jobs may be left.
    pub const fn ends_after(mut self, time: Duration) -> Self {
        self.ends_after = Some(time);
        self
    }

    /// Sets how long a finding may be shrunk, in real time: fewer faults, fewer nodes, smaller [choices](super::choose())
    /// and fewer jobs, in at most 1,000 further runs. Default: 30 s; zero means not at all.
    pub const fn shrinks_for(mut self, longest: Duration) -> Self {
        self.shrinks_for = longest;
        self
    }
}
