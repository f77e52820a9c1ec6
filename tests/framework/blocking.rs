//! Handlers that block their thread, on the real clock and dq's own thread.
//!
//! One node runs on a current-thread runtime that its handler blocks; the test observes it from another thread. Its times are
//! long enough that a machine that freezes for a second or two causes neither a lost lease nor a timeout.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dq::context::HealthProbe;
use dq::listener::OnTimeout;
use dq::prelude::*;
use dq::store::TopicCounts;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::backend::Shared;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "blocks")]
struct Blocks {
    #[job(id)]
    id: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "waits")]
struct Waits {
    #[job(id)]
    id: String,
}

/// What the handlers of a node share with the test.
#[derive(Clone)]
struct Handlers {
    node: &'static str,
    events: Sender<String>,
    /// The first run of `blocks` takes it and blocks its thread until the sender is dropped.
    gate: Arc<Mutex<Option<Receiver<()>>>>,
    go_on: Arc<Notify>,
}

impl Handlers {
    fn report(&self, what: std::fmt::Arguments<'_>) {
        self.events.send(format!("{} {what}", self.node)).unwrap();
    }
}

#[delay_listener(register = false, concurrency = 1, timeout = "2s")]
async fn blocks(job: Job<Blocks>, handlers: Handlers) -> Result<(), JobError> {
    handlers.report(format_args!("blocks {} {}", job.id(), job.attempt()));
    let gate = handlers.gate.lock().unwrap().take();
    if let Some(gate) = gate {
        assert!(gate.recv().is_err(), "the gate opens when its sender is dropped");
    }
    Ok(())
}

#[delay_listener(register = false, timeout = "none")]
async fn waits(job: Job<Waits>, handlers: Handlers) -> Result<(), JobError> {
    handlers.report(format_args!("waits {} {}", job.id(), job.attempt()));
    handlers.go_on.notified().await;
    Ok(())
}

/// A node on a current-thread runtime in a thread of its own, until the test stops it.
struct Node {
    provider: Provider,
    probe: HealthProbe,
    end: tokio::sync::oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

fn start(store: &Shared, handlers: Handlers) -> Node {
    let store = Shared::at(&store.address());
    let (handles, started) = channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    let run = async move {
        let factory = ContextFactory::new("test").store(store).without_inventory().variables([("", ""); 0]);
        let factory = factory.lease("4s").heartbeat_interval("1s").call_timeout("2s").provide(handlers);
        let factory = factory.topic("blocks", |topic| topic.on_timeout(OnTimeout::Immediate));
        let context = factory.listener::<blocks>().listener::<waits>().start().await.unwrap();
        context.ready().await;
        handles.send((context.provider().clone(), context.probe())).unwrap();
        ended.await.unwrap();
        context.shutdown(Duration::from_secs(5)).await;
    };
    let thread = thread::spawn(|| {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run);
    });
    let (provider, probe) = started.recv().unwrap();
    Node { provider, probe, end, thread }
}

impl Node {
    fn stop(self) {
        self.end.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

stores!(a_handler_that_blocks_its_thread_times_out_without_losing_the_lease_or_blocking_the_topic without a runtime: memory, file, redis);
fn a_handler_that_blocks_its_thread_times_out_without_losing_the_lease_or_blocking_the_topic() {
    let (events, received) = channel();
    let (block, gate) = channel::<()>();
    let gate = Arc::new(Mutex::new(Some(gate)));
    let go_on = Arc::new(Notify::new());
    let handlers = |node| Handlers { node, events: events.clone(), gate: gate.clone(), go_on: go_on.clone() };
    let next = || received.recv_timeout(Duration::from_secs(60)).expect("an event arrives in time");

    let store = Shared::named("a-handler-that-blocks");
    let first = start(&store, handlers("first"));
    let adds = tokio::runtime::Builder::new_current_thread().build().unwrap();
    adds.block_on(first.provider.add(Waits { id: "patient".into() })).unwrap();
    assert_eq!(next(), "first waits patient 0");
    adds.block_on(first.provider.add(Blocks { id: "a".into() })).unwrap();
    assert_eq!(next(), "first blocks a 0");

    // From here on the thread of the first node is blocked. Its job times out, and the second node runs it again.
    let second = start(&store, handlers("second"));
    assert_eq!(next(), "second blocks a 1", "the retry, at once");
    assert_eq!(first.probe.health().topics[0].counters.timed_out, 1);

    // A lease and a watch of it (3.5 s) later no node has reclaimed the other job of the first node.
    adds.block_on(second.provider.add(Blocks { id: "marker".into() }).after("8s")).unwrap();
    assert_eq!(
        next(),
        "second blocks marker 0",
        "the blocked handler keeps its permit, so the first node claims nothing"
    );
    let health = first.probe.health();
    assert_eq!(
        (health.topics[1].topic.as_str(), health.topics[1].held),
        ("waits", 1),
        "the first node keeps its lease"
    );
    assert_eq!(health.topics[0].running, 1, "the blocked handler has not returned");
    assert_eq!(second.probe.health().topics[1].counters.reclaimed, 0);

    drop(block); // the handler returns, and reports success
    go_on.notify_one();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let is_over = || {
        let health = first.probe.health();
        health.topics[1].counters.acked == 1 && health.topics[0].running == 0
    };
    while !is_over() {
        assert!(std::time::Instant::now() < deadline, "{:?}", first.probe.health());
        thread::yield_now();
    }
    let counters = first.probe.health().topics[0].counters;
    assert_eq!(
        (counters.late_outcomes, counters.acked, counters.stale_outcomes),
        (1, 0, 0),
        "the late outcome is rejected"
    );
    // The ack of the marker may still be in flight; no other job is left.
    adds.block_on(async {
        let nothing_left = |counts: TopicCounts| (counts.delayed, counts.running) == (0, 0);
        while !nothing_left(second.provider.counts::<Blocks>().await.unwrap()) {
            tokio::task::yield_now().await;
        }
    });
    first.stop();
    second.stop();
    assert!(received.try_recv().is_err(), "nothing ran twice");
}
