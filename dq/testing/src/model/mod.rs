//! The model test: runs random histories of a topic on a store and on a reference that is simple enough to be right, and compares
//! them.
//!
//! A history is a list of operations of several nodes and producers: every kind of request, with right, old and wrong sequence
//! numbers, tokens, call numbers and lease ends, with lost answers, and with a clock that moves forward and jumps back. After
//! every operation the answer, every page, query and count, the leases and the store's own audit must match the reference, whose
//! jobs move by [`State::apply`](dq::job::State::apply) alone. Every history ends in the same way: the nodes give back all runs
//! and parked jobs and claim them once more, which shows crashes, pending commands and notes that no answer has shown yet, and
//! everything is deleted.
//!
//! A history that fails is shrunk to few and simple operations, and the report has its seed and these operations. The model
//! ignores signals, which are hints; [`conformance`](super::conformance) tests them.
//!
//! `operation` has the operations and `machine` draws them; `cluster` and `batch` turn an operation into a request, which
//! `exchange` sends to the store and `reference` answers; `queries` compares the two.

mod batch;
mod cluster;
mod exchange;
mod machine;
mod operation;
mod queries;
mod reference;

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;

use self::cluster::{ClusterState, START};
use self::exchange::{Connections, ModelRequest};
use self::machine::Machine;
use self::operation::{Ending, Operation};
use self::reference::Choice;
use super::conformance::StoreFixture;
use dq::job::{AppName, TopicKey, TopicName};
use dq::store::Store;

/// The number of operations of a history.
const LENGTH: Range<usize> = 10..80;

/// A history on which a store and the reference differ, shrunk as far as possible.
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
        writeln!(f, "seed {}: the store and the reference differ after these operations", self.seed)?;
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
/// Panics inside a tokio runtime, because each history has a runtime of its own, and if proptest gives up.
pub fn check<F: StoreFixture>(seeds: Range<u64>, open: impl Fn() -> BoxFuture<'static, F>) -> Result<(), Difference> {
    for seed in seeds {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: 4_096, ..Config::default() };
        let ending = Ending::of(seed);
        let histories = Machine::sequential_strategy(LENGTH);
        let run = TestRunner::new_with_rng(config, rng).run(&histories, |(_, operations, seen)| {
            let each = || {
                if let Some(seen) = &seen {
                    seen.fetch_add(1, Ordering::SeqCst);
                }
            };
            run(&open, (&operations, ending), each).map_err(TestCaseError::fail)
        });
        match run {
            Ok(()) => {}
            Err(TestError::Fail(what, (_, operations, _))) => {
                let what = what.message().into();
                let (operations, what) = without_idle_operations(&open, (operations, ending), what);
                let operations = operations.iter().map(|operation| format!("{operation:?}")).collect();
                return Err(Difference { seed, operations, what });
            }
            Err(TestError::Abort(why)) => panic!("the model test gave up: {why}"),
        }
    }
    Ok(())
}

/// Leaves out every operation that the failure does not need: after shrinking, some may have no effect any more.
fn without_idle_operations<F: StoreFixture>(
    open: &impl Fn() -> BoxFuture<'static, F>,
    (mut operations, ending): (Vec<Operation>, Ending),
    mut what: String,
) -> (Vec<Operation>, String) {
    for n in (0..operations.len()).rev() {
        let fewer = [&operations[..n], &operations[n + 1..]].concat();
        let failed = catch_unwind(AssertUnwindSafe(|| run(open, (&fewer, ending), || {})));
        if let Ok(Err(why)) = failed {
            (operations, what) = (fewer, why);
        }
    }
    (operations, what)
}

/// Runs one history on a new store, in a runtime of its own.
fn run<F: StoreFixture>(
    open: &impl Fn() -> BoxFuture<'static, F>,
    (operations, ending): (&[Operation], Ending),
    each: impl Fn(),
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(history(open(), (operations, ending), each))
}

/// Runs one history and its ending.
async fn history<F: StoreFixture>(
    fixture: BoxFuture<'static, F>,
    (operations, ending): (&[Operation], Ending),
    each: impl Fn(),
) -> Result<(), String> {
    let fixture = fixture.await;
    fixture.set_clock(START).await;
    let key = TopicKey {
        app: AppName::new("model").expect("the name is valid"),
        topic: TopicName::new("topic").expect("the name is valid"),
    };
    let store = fixture.store();
    store.open(&key).await.map_err(|error| error.to_string())?;
    let mut pair = Pair {
        connections: Connections::new(store.clone(), key.clone()),
        fixture,
        store,
        key,
        cluster: ClusterState::new(),
    };
    for operation in operations {
        each();
        pair.apply(operation).await?;
    }
    for operation in ending.operations() {
        let failed = |what| format!("in the ending of the history, after {operation:?}: {what}");
        pair.apply(&operation).await.map_err(failed)?;
    }
    match pair.cluster.topic.jobs.is_empty() && pair.cluster.topic.broadcasts.is_empty() {
        true => Ok(()),
        false => Err("a job or broadcast is left after the ending of the history".into()),
    }
}

/// A store and the reference, which get the same operations.
struct Pair<F> {
    fixture: F,
    store: std::sync::Arc<dyn Store>,
    key: TopicKey,
    connections: Connections,
    cluster: ClusterState,
}

impl<F: StoreFixture> Pair<F> {
    /// Applies an operation to both and compares everything.
    async fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        let exchange = self.cluster.resolve(operation);
        if let ModelRequest::Clock(at) = exchange.request {
            self.fixture.set_clock(at).await;
        }
        let sent = |what: &str| format!("{what}\n  sent     {:?}", exchange.request);
        let found =
            self.connections.send(&exchange).await.map_err(|error| sent(&format!("the store failed: {error}")))?;
        let pages = queries::pages(&*self.store, &self.key).await.map_err(|error| error.to_string())?;
        let expected = self.cluster.execute(&exchange, Choice(Some(&queries::by_id(&pages))));
        let topic = &self.cluster.topic;
        queries::same_answer(&expected, &found, topic).map_err(|what| sent(&what))?;
        queries::agree(&*self.store, &self.key, &mut self.connections, &pages, topic).await.map_err(|what| sent(&what))
    }
}
