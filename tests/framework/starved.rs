//! Handlers that the user's runtime does not begin, and user code that blocks, on the real clock and dq's own thread.
//!
//! Handlers block the threads of their runtime on gates that the test opens, so nothing here depends on how long they take.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq::config::TopicOverrides;
use dq::context::{HealthProbe, TopicHealth};
use dq::job::State;
use dq::listener::{AckMode, RetryDelay};
use dq::prelude::*;
use dq::store::TopicCounts;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::backend::Shared;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "blocks")]
struct Blocks {
    #[job(id)]
    id: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work {
    #[job(id)]
    id: usize,
}

/// What the handlers share with the test.
#[derive(Clone)]
struct Handlers {
    events: Sender<String>,
    /// Each run of `blocks` takes the last one, and blocks its thread until the sender is dropped.
    gates: Arc<Mutex<Vec<Receiver<()>>>>,
}

impl Handlers {
    fn report(&self, what: std::fmt::Arguments<'_>) {
        self.events.send(what.to_string()).unwrap();
    }

    fn block(&self) {
        let gate = self.gates.lock().unwrap().pop().expect("the test made a gate for each run");
        assert!(gate.recv().is_err(), "the gate opens when its sender is dropped");
    }
}

#[delay_listener(register = false, timeout = "none")]
async fn blocks(job: Job<Blocks>, handlers: Handlers) -> Result<(), JobError> {
    handlers.report(format_args!("blocks {}", job.id()));
    handlers.block();
    Ok(())
}

/// The job whose handler blocks its thread and then fails.
const FAILS_AND_BLOCKS: &str = "100";

#[delay_listener(register = false, retry = "none")]
struct Works {
    handlers: Handlers,
}

impl DelayListener for Works {
    type Job = Work;

    async fn on_due(&self, job: Job<Work>, channel: Channel) -> Result<Decided, JobError> {
        self.handlers.report(format_args!("due {} {}", job.id(), job.attempt()));
        if job.id().as_str() == FAILS_AND_BLOCKS {
            self.handlers.block();
            return Err("no".into());
        }
        Ok(channel.ack())
    }

    async fn on_exhausted(&self, job: Job<Work>, _: &Failure) {
        self.handlers.report(format_args!("final {}", job.id()));
    }
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "fails")]
struct Fails {
    #[job(id)]
    id: usize,
}

/// Its handlers fail, and its `retry_delay` blocks its thread. It reports the thread that drops it.
#[delay_listener(register = false, retry = "immediate x 1")]
struct AlwaysFails {
    handlers: Handlers,
}

impl DelayListener for AlwaysFails {
    type Job = Fails;

    async fn on_due(&self, job: Job<Fails>, _: Channel) -> Result<Decided, JobError> {
        self.handlers.report(format_args!("fails {}", job.attempt()));
        Err("no".into())
    }

    async fn on_exhausted(&self, job: Job<Fails>, _: &Failure) {
        self.handlers.report(format_args!("final {}", job.id()));
    }

    fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
        self.handlers.block();
        RetryDelay::Exhausted
    }
}

impl Drop for AlwaysFails {
    fn drop(&mut self) {
        self.handlers.report(format_args!("dropped by {:?}", std::thread::current().name()));
    }
}

/// A node on a runtime of its own, and what the test observes.
struct Node {
    /// Dropped first: the runtime waits for its threads.
    gates: Vec<Sender<()>>,
    store: Shared,
    runtime: Runtime,
    context: Context,
    provider: Provider,
    probe: HealthProbe,
    events: Receiver<String>,
}

impl Node {
    /// A node whose handlers have this many threads and gates.
    fn start(
        name: &str,
        threads: usize,
        gates: usize,
        listeners: impl FnOnce(ContextFactory) -> ContextFactory,
    ) -> Self {
        let runtime =
            Builder::new_multi_thread().thread_name("handlers").worker_threads(threads).enable_all().build().unwrap();
        let (report, events) = channel();
        let (gates, taken): (Vec<_>, Vec<_>) = (0..gates).map(|_| channel()).unzip();
        let store = Shared::named(name);
        let handlers = Handlers { events: report, gates: Arc::new(Mutex::new(taken)) };
        let context = runtime.block_on(async {
            let factory = ContextFactory::new("test")
                .store(Shared::at(&store.address()))
                .without_inventory()
                .variables([("", ""); 0]);
            let context = listeners(factory.provide(handlers)).start().await.unwrap();
            context.ready().await;
            context
        });
        let (provider, probe) = (context.provider().clone(), context.probe());
        Self { store, runtime, context, provider, probe, events, gates }
    }

    /// Blocks this many threads of the handlers. The gate of the last one is the first.
    fn block_threads(&self, threads: usize) {
        for gate in 0..threads {
            self.run(self.provider.add(Blocks { id: gate.to_string() })).unwrap();
            assert_eq!(self.next(), format!("blocks {gate}"));
        }
    }

    /// Runs what a caller does, on a runtime of its own.
    fn run<T>(&self, call: impl IntoFuture<Output = T>) -> T {
        Builder::new_current_thread().enable_time().build().unwrap().block_on(call.into_future())
    }

    fn next(&self) -> String {
        self.events.recv_timeout(Duration::from_secs(60)).expect("an event arrives in time")
    }

    fn health(&self, topic: &str) -> TopicHealth {
        self.probe.health().topics.into_iter().find(|health| health.topic == topic).unwrap()
    }

    fn until_health(&self, topic: &str, wanted: impl Fn(&TopicHealth) -> bool) -> TopicHealth {
        self.until(|| Some(self.health(topic)).filter(&wanted))
    }

    /// Waits until the jobs of `work` in the store are as wanted.
    fn until_counts(&self, wanted: impl Fn(&TopicCounts) -> bool) -> TopicCounts {
        self.until(|| Some(self.run(self.provider.counts::<Work>()).unwrap()).filter(&wanted))
    }

    fn until<T>(&self, found: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(Instant::now() < deadline, "{:?}", self.probe.health());
            std::thread::yield_now();
        }
    }

    /// Opens all gates, stops the node, and returns the events that the test has not read.
    fn stop(mut self) -> Vec<String> {
        self.gates.clear();
        self.runtime.block_on(self.context.shutdown(Duration::from_secs(10)));
        drop((self.runtime, self.store));
        self.events.try_iter().collect()
    }
}

fn blocks_and_works(factory: ContextFactory) -> ContextFactory {
    factory.listener::<blocks>().listener::<Works>()
}

stores!(jobs_whose_handlers_did_not_begin_go_back_without_an_attempt_and_run_once_later without a runtime: memory, file, redis);
fn jobs_whose_handlers_did_not_begin_go_back_without_an_attempt_and_run_once_later() {
    let short = |topic: TopicOverrides| topic.timeout("1s");
    let listeners = |factory| blocks_and_works(factory).topic("work", short);
    let mut node = Node::start("did-not-begin", 2, 2, listeners);
    node.block_threads(2);
    node.run(node.provider.add_many((0..20).map(|id| Work { id }))).unwrap().all().unwrap();
    node.until_health("work", |health| health.counters.claimed == 20);
    let counts = node.until_counts(|counts| counts.running == 0);
    assert_eq!((counts.delayed, counts.dead), (20, 0), "they are as they were");
    let health = node.until_health("work", |health| health.held == 0);
    assert!(health.starved.is_some_and(|advice| advice.contains("`spawn_blocking`")));
    assert_eq!((health.counters.starved, health.counters.timed_out), (20, 0));
    // One more job, and a second of renewals: while runs starve, the node claims nothing.
    node.run(node.provider.add(Work { id: 20 })).unwrap();

    node.gates.clear();
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..=20 {
        *ran.entry(node.next()).or_default() += 1;
    }
    let expected = (0..=20).map(|id| (format!("due {id} 0"), 1)).collect();
    assert_eq!(ran, expected, "each runs once, with its first attempt");
    let counts = node.until_counts(|counts| counts.running == 0);
    assert_eq!((counts.delayed, counts.dead), (0, 0));
    let health = node.health("work");
    assert_eq!(
        (health.starved, health.counters.claimed),
        (None, 41),
        "nothing was claimed while the threads were blocked"
    );
    assert_eq!(node.stop(), [""; 0], "a run that was given back never starts");
}

#[test]
fn a_burst_for_which_the_threads_are_too_few_runs_every_job_once() {
    let mut node = Node::start("burst", 2, 66, |factory| factory.listener::<blocks>());
    node.run(node.provider.add_many((0..66).map(|id| Blocks { id: id.to_string() }))).unwrap().all().unwrap();
    // Two handlers begin and block their threads. The others begin as the gates open, or go back and come again.
    let mut ran = vec![node.next(), node.next()];
    node.until_health("blocks", |health| health.counters.starved > 0);
    while node.gates.pop().is_some() {
        if ran.len() < 66 {
            ran.push(node.next());
        }
    }
    ran.sort_unstable();
    let mut expected: Vec<_> = (0..66).map(|id| format!("blocks {id}")).collect();
    expected.sort_unstable();
    assert_eq!(ran, expected);
    let health = node.until_health("blocks", |health| health.counters.acked == 66);
    assert_eq!((health.counters.dead, health.counters.retried, health.counters.failed), (0, 0, 0));
    assert_eq!(node.stop(), [""; 0]);
}

#[test]
fn an_on_exhausted_that_did_not_begin_stays_owed() {
    let mut node = Node::start("final-retry-owed", 1, 2, blocks_and_works);
    node.run(node.provider.add(Work { id: 100 })).unwrap();
    assert_eq!(node.next(), "due 100 0"); // it blocks the only thread
    node.run(node.provider.add(Blocks { id: "next".into() })).unwrap();
    node.until_health("blocks", |health| health.running == 1);
    node.gates.pop(); // it fails; the thread begins the other handler, which blocks it before `on_exhausted` is there
    assert_eq!(node.next(), "blocks next");
    node.until_health("work", |health| health.counters.starved == 1);
    let job = node.until(|| {
        let seen = node.run(node.provider.get::<Work>(100)).unwrap().expect("the store has it");
        Some(seen).filter(|seen| seen.state() == State::Delayed)
    });
    assert_eq!(job.details.unwrap().attempts, 1);
    node.gates.clear();
    assert_eq!(node.next(), "final 100");
    node.until_counts(|counts| counts.dead == 1);
    assert_eq!(node.stop(), [""; 0]);
}

#[test]
fn a_run_that_was_acked_on_claim_waits_until_it_begins() {
    let on_claim = |topic: TopicOverrides| topic.ack(AckMode::OnClaim);
    let listeners = |factory| blocks_and_works(factory).topic("work", on_claim);
    let mut node = Node::start("acked-on-claim", 1, 1, listeners);
    node.block_threads(1);
    node.run(node.provider.add_many((0..3).map(|id| Work { id }))).unwrap().all().unwrap();
    let health = node.until_health("work", |health| health.counters.starved == 3);
    assert_eq!((health.counters.acked, health.running), (3, 3), "it cannot go back");
    node.run(node.provider.add(Work { id: 3 })).unwrap();
    node.gates.clear();
    let mut ran: Vec<_> = (0..4).map(|_| node.next()).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["due 0 0", "due 1 0", "due 2 0", "due 3 0"]);
    node.until_health("work", |health| health.running == 0 && health.starved.is_none());
    assert_eq!(node.stop(), [""; 0]);
}

stores!(a_node_that_stops_gives_back_what_did_not_begin without a runtime: memory, file, redis);
fn a_node_that_stops_gives_back_what_did_not_begin() {
    let node = Node::start("stops", 1, 1, blocks_and_works);
    node.block_threads(1);
    node.run(node.provider.add_many((0..3).map(|id| Work { id }))).unwrap().all().unwrap();
    node.until_health("work", |health| health.running == 3);
    let Node { gates, store, runtime, context, probe, events, .. } = node;
    let elsewhere = Builder::new_current_thread().enable_time().build().unwrap();
    elsewhere.block_on(context.shutdown(Duration::ZERO));
    let health = probe.health().topics.into_iter().find(|health| health.topic == "work").unwrap();
    assert_eq!((health.counters.rolled_back, health.held), (3, 0));
    drop(gates);
    drop((runtime, store));
    assert_eq!(events.try_iter().collect::<Vec<_>>(), [""; 0], "none of them starts");
}

#[test]
fn a_function_that_blocks_beyond_its_timeout_waits_for_no_retry_delay() {
    let times_out = |topic: TopicOverrides| topic.timeout("1s").retry("1h x 1");
    let mut node =
        Node::start("no-retry-delay", 2, 2, |factory| factory.listener::<blocks>().topic("blocks", times_out));
    node.block_threads(2);
    let health = node.until_health("blocks", |health| {
        assert!(health.running <= 2, "only what blocks: {health:?}");
        health.counters.failed == 2
    });
    assert_eq!((health.counters.timed_out, health.starved), (2, None));
    node.gates.clear();
    node.until_health("blocks", |health| health.counters.late_outcomes == 2);
    assert_eq!(node.stop(), [""; 0]);
}

#[test]
fn a_runtime_that_cannot_ask_retry_delay_starves() {
    let times_out = |topic: TopicOverrides| topic.timeout("1s").retry("1h x 1");
    let listeners = |factory| blocks_and_works(factory).topic("work", times_out);
    let mut node = Node::start("cannot-ask", 1, 1, listeners);
    node.run(node.provider.add(Work { id: 100 })).unwrap();
    assert_eq!(node.next(), "due 100 0"); // it blocks the only thread
    node.until_health("work", |health| health.counters.failed == 1 && health.starved.is_some());
    node.gates.clear();
    node.until_health("work", |health| health.starved.is_none());
    assert_eq!(node.stop(), [""; 0]);
}

#[test]
fn a_retry_function_that_blocks_delays_no_other_topic_and_the_settings_decide() {
    let listeners = |factory: ContextFactory| factory.listener::<AlwaysFails>().listener::<Works>();
    let mut node = Node::start("retry-function-blocks", 10, 8, listeners);
    node.run(node.provider.add_many((0..4).map(|id| Fails { id }))).unwrap().all().unwrap();
    let failed: Vec<_> = (0..4).map(|_| node.next()).collect();
    assert_eq!(failed, ["fails 0"; 4]);
    // From here on four threads of the handlers are blocked by the function, and each of the first retries blocks another.
    node.run(node.provider.add(Work { id: 1 })).unwrap();
    assert_eq!(node.next(), "due 1 0", "before the function has returned");
    let retried: Vec<_> = (0..4).map(|_| node.next()).collect();
    assert_eq!(retried, ["fails 1"; 4], "by the settings");
    let mut finals: Vec<_> = (0..4).map(|_| node.next()).collect();
    finals.sort_unstable();
    assert_eq!(finals, ["final 0", "final 1", "final 2", "final 3"]);
    node.until_health("fails", |health| health.counters.dead == 4 && health.running == 8);
    node.gates.clear();
    let health = node.until_health("fails", |health| health.running == 0);
    assert_eq!((health.counters.retried, health.counters.late_outcomes, health.counters.restarts), (4, 0, 0));
    let left = node.stop();
    assert_eq!(left, [r#"dropped by Some("handlers")"#], "not by dq's own thread");
}
