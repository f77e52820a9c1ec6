//! The model test: histories of a topic, drawn at random, on a store and on a reference that is too plain to be wrong.
//!
//! A history is a list of steps of several nodes and producers: every request there is, under right, old and wrong turns,
//! tokens, numbers and lease ends, with answers that are lost, and a clock that goes on and jumps back. After every step the
//! answer, every page, look and count, the leases and the store's own audit must be what the reference says, whose jobs move by
//! [`State::apply`](dq::job::State::apply) alone. At its end every history is brought to an end: what runs or is parked is given
//! back and claimed once more, so that crashes, marks and notes that nobody has seen yet show, and everything is deleted.
//!
//! A history that fails is shrunk to few and plain steps; its seed and its steps are told. Signals are hints and not looked
//! at here: [`conformance`](super::conformance) does.

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
use self::exchange::{Request, Wires};
use self::machine::Machine;
use self::operation::{Ending, Operation};
use self::reference::Choice;
use super::conformance::StoreFixture;
use dq::job::{AppName, TopicKey, TopicName};
use dq::store::Store;

/// How long a history is.
const STEPS: Range<usize> = 10..80;

/// A history on which a store and the reference differ, as short as it could be made.
#[derive(Debug)]
pub struct Difference {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// Its steps.
    pub steps: Vec<String>,
    /// What differed, after the last of them or while the history was brought to its end.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: after these steps the store and the reference differ", self.seed)?;
        for (n, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {:2} {step}", n + 1)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Difference {}

/// Runs one history for each seed, each on a new store that `open` gives.
///
/// # Errors
/// The first [`Difference`].
///
/// # Panics
/// Inside of a tokio runtime: each history has one of its own.
pub fn check<F: StoreFixture>(seeds: Range<u64>, open: impl Fn() -> BoxFuture<'static, F>) -> Result<(), Difference> {
    for seed in seeds {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: 4_096, ..Config::default() };
        let ending = Ending::of(seed);
        let histories = Machine::sequential_strategy(STEPS);
        let run = TestRunner::new_with_rng(config, rng).run(&histories, |(_, steps, seen)| {
            let each = || {
                if let Some(seen) = &seen {
                    seen.fetch_add(1, Ordering::SeqCst);
                }
            };
            run(&open, (&steps, ending), each).map_err(TestCaseError::fail)
        });
        match run {
            Ok(()) => {}
            Err(TestError::Fail(what, (_, steps, _))) => {
                let (steps, what) = without_idle_steps(&open, (steps, ending), what.message().into());
                return Err(Difference { seed, steps: steps.iter().map(|step| format!("{step:?}")).collect(), what });
            }
            Err(TestError::Abort(why)) => panic!("the model test gave up: {why}"),
        }
    }
    Ok(())
}

/// Leaves out every step without which a history fails too: plainer steps may have made others idle.
fn without_idle_steps<F: StoreFixture>(
    open: &impl Fn() -> BoxFuture<'static, F>,
    (mut steps, ending): (Vec<Operation>, Ending),
    mut what: String,
) -> (Vec<Operation>, String) {
    for n in (0..steps.len()).rev() {
        let fewer = [&steps[..n], &steps[n + 1..]].concat();
        let failed = catch_unwind(AssertUnwindSafe(|| run(open, (&fewer, ending), || {})));
        if let Ok(Err(why)) = failed {
            (steps, what) = (fewer, why);
        }
    }
    (steps, what)
}

/// One history on a new store, in a runtime of its own.
fn run<F: StoreFixture>(
    open: &impl Fn() -> BoxFuture<'static, F>,
    (steps, ending): (&[Operation], Ending),
    each: impl Fn(),
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(history(open(), (steps, ending), each))
}

/// One history, and its end.
async fn history<F: StoreFixture>(
    fixture: BoxFuture<'static, F>,
    (steps, ending): (&[Operation], Ending),
    each: impl Fn(),
) -> Result<(), String> {
    let fixture = fixture.await;
    fixture.set_clock(START).await;
    let key = TopicKey {
        app: AppName::new("model").expect("the name is good"),
        topic: TopicName::new("topic").expect("the name is good"),
    };
    let store = fixture.store();
    store.open(&key).await.map_err(|error| error.to_string())?;
    let mut pair =
        Pair { wires: Wires::new(store.clone(), key.clone()), fixture, store, key, cluster: ClusterState::new() };
    for step in steps {
        each();
        pair.step(step).await?;
    }
    for step in ending.steps() {
        pair.step(&step).await.map_err(|what| format!("at the end of the history, after {step:?}: {what}"))?;
    }
    match pair.cluster.topic.jobs.is_empty() && pair.cluster.topic.broadcasts.is_empty() {
        true => Ok(()),
        false => Err("something is left at the end of the history".into()),
    }
}

/// A store and the reference.
struct Pair<F> {
    fixture: F,
    store: std::sync::Arc<dyn Store>,
    key: TopicKey,
    wires: Wires,
    cluster: ClusterState,
}

impl<F: StoreFixture> Pair<F> {
    /// Takes a step on both and compares everything.
    async fn step(&mut self, step: &Operation) -> Result<(), String> {
        let exchange = self.cluster.resolve(step);
        if let Request::Clock(at) = exchange.request {
            self.fixture.set_clock(at).await;
        }
        let sent = |what: &str| format!("{what}\n  sent     {:?}", exchange.request);
        let found = self.wires.send(&exchange).await.map_err(|error| sent(&format!("the store failed: {error}")))?;
        let pages = queries::pages(&*self.store, &self.key).await.map_err(|error| error.to_string())?;
        let expected = self.cluster.execute(&exchange, Choice(Some(&queries::by_id(&pages))));
        let topic = &self.cluster.topic;
        queries::same_answer(&expected, &found, topic).map_err(|what| sent(&what))?;
        queries::agree(&*self.store, &self.key, &mut self.wires, &pages, topic).await.map_err(|what| sent(&what))
    }
}
