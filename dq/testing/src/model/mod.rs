//! The model test: runs random histories of a topic on a store and on the memory store, and compares them.
//!
//! A history is a list of operations of several nodes and producers: every kind of request, with right, old and wrong sequence
//! numbers, tokens, call numbers and lease ends, with lost answers, and with a clock that moves forward and jumps back. After
//! every operation the answer, every page, query and count, and the leases must be those of the memory store, which is the
//! reference. The memory store is checked by itself: `invariants` says what must hold after every step, and that
//! jobs move by [`State::apply`](dq::job::State::apply) alone. Every history ends in the same way: the nodes give back all runs
//! and parked jobs and claim them once more, which shows crashes, pending commands and notes that no answer has shown yet, and
//! everything is deleted.
//!
//! A history that fails is shrunk to few and simple operations, and the report has its seed and these operations. The model
//! ignores signals, which are hints; [`conformance`](super::conformance) tests them.
//!
//! `operation` has the operations and `machine` draws them; `cluster` and `batch` turn an operation into a request, which
//! `exchange` sends to both stores; `queries` compares what they show.

mod batch;
mod cluster;
mod exchange;
mod invariants;
mod machine;
mod operation;
mod queries;

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use self::cluster::{ClusterState, START, Topic};
use self::exchange::{Connections, Exchange, ModelAnswer, ModelRequest};
use self::invariants::Invariants;
use self::operation::{Ending, Operation};
use self::queries::Shown;
use super::conformance::StoreFixture;
use dq::environment::StoreClock as _;
use dq::job::{AppName, TopicKey, TopicName};
use dq::store::memory::MemoryStore;
use dq::store::step::Reclaimed;
use dq::store::{Answer, Store as _, StoreError};
use dq::testing::ManualClock;

/// The number of operations of a history.
const LENGTH: Range<usize> = 10..80;

/// A history on which a store and the memory store differ, shrunk as far as possible.
#[derive(Debug)]
pub struct Difference {
    /// The seed of the history.
    pub seed: u64,
    /// The operations of the history.
    pub operations: Vec<String>,
    /// The difference, after the last operation or during the ending of the history.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: the store and the memory store differ after these operations", self.seed)?;
        for (n, operation) in self.operations.iter().enumerate() {
            writeln!(f, "  {:2} {operation}", n + 1)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Difference {}

/// Runs one history for each seed, each on a new store from `open`.
///
/// # Errors
/// The first [`Difference`].
///
/// # Panics
/// Panics inside a tokio runtime, because each history has a runtime of its own.
pub fn check<F: StoreFixture>(seeds: Range<u64>, open: impl Fn() -> BoxFuture<'static, F>) -> Result<(), Difference> {
    for seed in seeds {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
        let ending = Ending::of(seed);
        let length = drawn(LENGTH, &mut runner).current();
        let mut trees: Vec<Box<dyn ValueTree<Value = Operation>>> = Vec::new();
        let next = |cluster: &ClusterState| {
            (trees.len() < length).then(|| {
                trees.push(drawn(machine::operations(cluster), &mut runner));
                trees[trees.len() - 1].current()
            })
        };
        if let Err(what) = run(&open, next, ending) {
            let (operations, what) = shrunk(&open, trees, ending, what);
            return Err(Difference { seed, operations, what });
        }
    }
    Ok(())
}

fn drawn<S: Strategy>(strategy: S, runner: &mut TestRunner) -> S::Tree {
    strategy.new_tree(runner).expect("no strategy of the model rejects a value")
}

/// Leaves out every operation that the failure does not need, and makes the others as simple as it allows.
fn shrunk<F: StoreFixture>(
    open: &impl Fn() -> BoxFuture<'static, F>,
    mut trees: Vec<Box<dyn ValueTree<Value = Operation>>>,
    ending: Ending,
    mut what: String,
) -> (Vec<String>, String) {
    let fails = |trees: &[Box<dyn ValueTree<Value = Operation>>]| {
        let mut operations = trees.iter().map(ValueTree::current);
        run(open, |_| operations.next(), ending).err()
    };
    for n in (0..trees.len()).rev() {
        let left_out = trees.remove(n);
        match fails(&trees) {
            Some(why) => what = why,
            None => trees.insert(n, left_out),
        }
    }
    for n in 0..trees.len() {
        let mut moved = trees[n].simplify();
        for _ in 0..64 {
            if !moved {
                break;
            }
            let failed = fails(&trees);
            moved = if failed.is_some() { trees[n].simplify() } else { trees[n].complicate() };
            what = failed.unwrap_or(what);
        }
        // The last try may have been one simplification too many.
        while fails(&trees).is_none() && trees[n].complicate() {}
    }
    (trees.iter().map(|tree| format!("{:?}", tree.current())).collect(), what)
}

/// Runs one history on a new store, in a runtime of its own.
fn run<F: StoreFixture>(
    open: &impl Fn() -> BoxFuture<'static, F>,
    next: impl FnMut(&ClusterState) -> Option<Operation>,
    ending: Ending,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let ran = catch_unwind(AssertUnwindSafe(|| runtime.block_on(history(open(), next, ending))));
    ran.unwrap_or_else(|_| Err("a panic, whose message is above".into()))
}

/// Runs one history and its ending.
async fn history<F: StoreFixture>(
    fixture: BoxFuture<'static, F>,
    mut next: impl FnMut(&ClusterState) -> Option<Operation>,
    ending: Ending,
) -> Result<(), String> {
    let mut pair = Pair::new(fixture.await).await.map_err(|error| error.to_string())?;
    while let Some(operation) = next(&pair.cluster) {
        pair.apply(&operation).await?;
    }
    for operation in ending.operations() {
        let failed = |what| format!("in the ending of the history, after {operation:?}: {what}");
        pair.apply(&operation).await.map_err(failed)?;
    }
    let view = &pair.cluster.topic.view;
    match view.jobs.is_empty() && view.broadcasts.is_empty() {
        true => Ok(()),
        false => Err("a job or broadcast is left after the ending of the history".into()),
    }
}

/// A store and the memory store, which get the same operations.
struct Pair<F> {
    fixture: F,
    found: Connections,
    clock: Arc<ManualClock>,
    memory: Arc<MemoryStore>,
    expected: Connections,
    cluster: ClusterState,
    invariants: Invariants,
}

impl<F: StoreFixture> Pair<F> {
    async fn new(fixture: F) -> Result<Self, StoreError> {
        let key = TopicKey {
            app: AppName::new("model").expect("the name is valid"),
            topic: TopicName::new("topic").expect("the name is valid"),
        };
        let clock = Arc::new(ManualClock::at(START));
        fixture.set_clock(START).await;
        let memory = Arc::new(MemoryStore::new(clock.clone()));
        let found = Connections::new(fixture.store(), key.clone());
        let expected = Connections::new(memory.clone(), key.clone());
        found.store.open(&key).await?;
        memory.open(&key).await?;
        let (cluster, invariants) = (ClusterState::new(), Invariants::default());
        Ok(Self { fixture, found, clock, memory, expected, cluster, invariants })
    }

    /// Applies an operation to both and compares everything.
    async fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        let exchange = self.cluster.resolve(operation);
        let sent = |what: &str| format!("{what}\n  sent     {:?}", exchange.request);
        if let ModelRequest::Clock(at) = exchange.request {
            self.fixture.set_clock(at).await;
            self.clock.set(at);
            self.cluster.topic.micros = at;
        }
        loop {
            let failed = |error| sent(&format!("the store failed: {error}"));
            let found = self.found.send(&exchange).await.map_err(failed)?;
            let whole = Exchange { request: exchange.request.clone(), lost: false };
            let expected = self.expected.send(&whole).await.map_err(failed)?;
            let shown = Shown::by(&mut self.expected).await.map_err(failed)?;
            let topic = self.topic(&shown).await.map_err(failed)?;
            let step = (&exchange.request, &expected);
            self.invariants.check(step, (&self.cluster.topic, &topic), &shown).map_err(|what| sent(&what))?;
            if !exchange.lost {
                queries::same_answer(&expected, &found, &topic.view.leases).map_err(|what| sent(&what))?;
            }
            self.cluster.executed(&exchange, &expected, topic);
            // The store chooses which rows a bounded reclaim takes first, so both take all before they are compared.
            if !matches!(&expected, ModelAnswer::Step(Answer::Reclaim(Reclaimed { moved: 1.., left: 1.. }))) {
                let found = Shown::by(&mut self.found).await.map_err(failed)?;
                return shown.same_as(&found).map_err(|what| sent(&what));
            }
        }
    }

    /// The topic as the memory store has it now.
    async fn topic(&self, shown: &Shown) -> Result<Topic, StoreError> {
        let (key, counts) = (&self.expected.key, shown.counts);
        let state = self.memory.topic_state(key).await?;
        let is_paused = state.pause.is_some_and(|pause| pause.until.is_none_or(|until| counts.clock < until));
        let (view, is_held) = (self.memory.view(key), is_paused || state.drain.is_some());
        Ok(Topic { micros: self.clock.micros(), view, counts, is_held })
    }
}
