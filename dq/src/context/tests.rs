//! A node on a memory store under the paused clock, with a handler that each test scripts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::node::{Plan, TopicPlan};
use super::node::{Running, start};
use crate::config::{Listing, NodeSettings, TopicSettings};
use crate::environment::{Environment, Seeded, SpawnOn, TokioClock};
use crate::job::{AppName, Codec, JobId, Metadata, ProducerId, Record, TopicKey, TopicName};
use crate::listener::{AckMode, Decision, Delivery, Failure, RetryDelay};
use crate::listener::{ErasedListener, HandlerCall, Returned};
use crate::provider::DefinitionsWake;
use crate::store::memory::MemoryStore;
use crate::store::{Due, NewJob, Numbered, Producer, Store, TopicCounts};

type Script = Box<dyn Fn(&HandlerCall, &Delivery) -> BoxFuture<'static, Returned> + Send + Sync>;

struct Scripted(Script);

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl ErasedListener for Scripted {
    fn call(self: Arc<Self>, call: HandlerCall, _: Record, delivery: Delivery) -> BoxFuture<'static, Returned> {
        (self.0)(&call, &delivery)
    }

    fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
        RetryDelay::BySettings
    }
}

struct Node {
    store: Arc<MemoryStore>,
    running: Running,
    producer: Arc<dyn Producer>,
    key: TopicKey,
    number: Mutex<u64>,
}

fn key() -> TopicKey {
    TopicKey { app: AppName::new("test").unwrap(), topic: TopicName::new("t").unwrap() }
}

async fn node_on(store: Arc<MemoryStore>, seed: u64, settings: TopicSettings, script: Script) -> Node {
    node_in(Environment::on_this_runtime(Arc::new(Seeded::new(seed))), store, settings, script).await
}

async fn node_in(environment: Environment, store: Arc<MemoryStore>, settings: TopicSettings, script: Script) -> Node {
    let key = key();
    let topic = TopicPlan {
        key: key.clone(),
        listener: Arc::new(Scripted(script)),
        name: "scripted",
        declared_at: "here",
        settings,
        listing: Listing::default(),
        schedules: Vec::new(),
        definitions: DefinitionsWake::default(),
    };
    let plan = Plan {
        app: key.app.clone(),
        node: environment.node_id(),
        store: store.clone(),
        environment: environment.clone(),
        settings: NodeSettings::default(),
        listing: Listing::default(),
        topics: vec![topic],
        broadcasts: Vec::new(),
        refused: BTreeMap::new(),
    };
    let running = start(&plan);
    let producer = store.producer(&key, &ProducerId::new(environment.random_text()));
    Node { store, running, producer, key, number: Mutex::new(0) }
}

async fn node(settings: TopicSettings, script: Script) -> Node {
    node_on(Arc::new(MemoryStore::new(Arc::new(TokioClock::new()))), 1, settings, script).await
}

impl Node {
    async fn add(&self, id: &str, after: Duration) {
        let number = {
            let mut number = self.number.lock().unwrap();
            *number += 1;
            *number
        };
        let record = Record::new(&Metadata { delay: after, ..Metadata::default() }, Codec::Json, b"{}");
        let job = NewJob { due: Due::After(after), ..NewJob::new(JobId::new(id).unwrap(), record) };
        self.producer.add(Numbered { number, items: vec![job] }).await.unwrap();
    }

    async fn counts(&self) -> TopicCounts {
        self.store.counts(&self.key).await.unwrap()
    }
}

/// A handler that reports each call as `due ID ATTEMPT`, and returns what `script` returns.
fn reporting(
    script: impl Fn(&HandlerCall, &Delivery) -> Returned + Send + Sync + 'static,
) -> (Script, mpsc::UnboundedReceiver<String>) {
    let (calls, reported) = mpsc::unbounded_channel();
    let script: Script = Box::new(move |call, delivery| {
        let kind = match call {
            HandlerCall::OnDue => "due",
            HandlerCall::FinalRetry(_) => "final",
            HandlerCall::ProcessUnacked => "swept",
        };
        calls.send(format!("{kind} {} {}", delivery.id, delivery.attempt)).unwrap();
        let returned = script(call, delivery);
        Box::pin(async move { returned })
    });
    (script, reported)
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_job_runs_when_due_and_is_gone_when_acked() {
    let (script, mut calls) = reporting(|_, _| Returned::Decided(Decision::Ack));
    let node = node(TopicSettings::default(), script).await;
    let start = tokio::time::Instant::now();
    node.add("a", 90 * SECOND).await;
    assert_eq!(calls.recv().await.unwrap(), "due a 0");
    assert_eq!(start.elapsed().as_secs(), 90);
    node.running.order_stop(SECOND);
    node.running.stopped().await;
    let counts = node.counts().await;
    assert_eq!((counts.delayed, counts.running, counts.dead), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failing_job_runs_once_more_than_it_has_retries_and_is_dead_after_final_retry() {
    let (script, mut calls) = reporting(|call, _| match call {
        HandlerCall::FinalRetry(_) => Returned::FinalRetried(None),
        _ => Returned::Failed(Failure::new(crate::job::Cause::Error, "no")),
    });
    let settings = TopicSettings { retry: "1m, 5m".parse().unwrap(), ..TopicSettings::default() };
    let node = node(settings, script).await;
    node.add("a", SECOND).await;
    for expected in ["due a 0", "due a 1", "due a 2", "final a 3"] {
        assert_eq!(calls.recv().await.unwrap(), expected);
    }
    node.running.order_stop(SECOND);
    node.running.stopped().await;
    assert_eq!(node.counts().await.dead, 1);
}

#[tokio::test(start_paused = true)]
async fn the_jobs_of_a_killed_node_run_on_another() {
    let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::new())));
    let (never, mut first) = mpsc::unbounded_channel();
    let stuck: Script = Box::new(move |_, delivery| {
        never.send(delivery.id.to_string()).unwrap();
        Box::pin(std::future::pending())
    });
    let dying = node_on(store.clone(), 1, TopicSettings { timeout: None, ..TopicSettings::default() }, stuck).await;
    dying.add("a", SECOND).await;
    assert_eq!(first.recv().await.unwrap(), "a");
    dying.running.kill();
    let (script, mut second) = reporting(|_, _| Returned::Decided(Decision::Ack));
    let other = node_on(store, 2, TopicSettings::default(), script).await;
    let start = tokio::time::Instant::now();
    assert_eq!(second.recv().await.unwrap(), "due a 0");
    assert!((14 * SECOND..25 * SECOND).contains(&start.elapsed()), "a lease, and a watch: {:?}", start.elapsed());
    other.running.order_stop(SECOND);
    other.running.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_is_ready_once_the_store_has_answered_every_topic() {
    let (script, _calls) = reporting(|_, _| Returned::Decided(Decision::Ack));
    let node = node(TopicSettings::default(), script).await;
    assert!(!node.running.health().ready);
    node.running.ready().await;
    assert!(node.running.health().ready);
}

/// Lets all tasks run until they wait, moves the clock, and lets them run again.
async fn advance(by: Duration) {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(by).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_handlers_have_no_runtime_any_more_takes_no_jobs() {
    let gone = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.handle().clone()
    });
    let handler = gone.join().unwrap();
    let spawn = Arc::new(SpawnOn::new(tokio::runtime::Handle::current(), handler));
    let environment = Environment::new(Arc::new(TokioClock::new()), Arc::new(Seeded::new(1)), spawn);
    let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::new())));
    let settings = TopicSettings { ack: AckMode::OnClaim, concurrency: 1, ..TopicSettings::default() };
    let (script, _calls) = reporting(|_, _| Returned::Decided(Decision::Ack));
    let node = node_in(environment, store, settings, script).await;
    for job in 0..10 {
        node.add(&job.to_string(), Duration::ZERO).await;
    }
    for _ in 0..60 {
        advance(SECOND).await;
    }
    assert_eq!(node.counts().await.delayed, 9, "the node learned it from one job");
    assert!(!node.running.health().ready);
    node.running.order_stop(SECOND);
    node.running.stopped().await;
}
