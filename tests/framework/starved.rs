//! Handlers that the user's runtime does not begin, and user code that blocks, on the real clock and dq's own thread.
//!
//! Handlers block the threads of their runtime on gates that the test opens, so nothing here depends on how long they take.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq::context::{Counters, HealthProbe};
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

#[delay_listener(register = false, timeout = "1s", retry = "none")]
struct Works {
    handlers: Handlers,
}

impl DelayListener for Works {
    type Job = Work;

    async fn on_due(&self, job: Job<Work>, channel: Channel) -> Result<Decided, JobError> {
        self.handlers.report(format_args!("due {} {}", job.id(), job.attempt()));
        Ok(channel.ack())
    }

    async fn final_retry(&self, job: Job<Work>, _: &Failure) {
        self.handlers.report(format_args!("final {}", job.id()));
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
    /// A node whose handlers have this many threads, with as many gates.
    fn start(name: &str, threads: usize, listeners: impl FnOnce(ContextFactory, Handlers) -> ContextFactory) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
        let (report, events) = channel();
        let (gates, taken): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel()).unzip();
        let store = Shared::named(name);
        let handlers = Handlers { events: report, gates: Arc::new(Mutex::new(taken)) };
        let context = runtime.block_on(async {
            let factory = ContextFactory::new("test")
                .store(Shared::at(&store.address()))
                .without_inventory()
                .variables([("", ""); 0]);
            let context = listeners(factory.provide(handlers.clone()), handlers).start().await.unwrap();
            context.ready().await;
            context
        });
        let (provider, probe) = (context.provider().clone(), context.probe());
        Self { store, runtime, context, provider, probe, events, gates }
    }

    /// Blocks every thread of the handlers.
    fn block_threads(&self) {
        for gate in 0..self.gates.len() {
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

    fn counters(&self, topic: &str) -> Counters {
        self.probe.health().topics.iter().find(|health| health.topic == topic).unwrap().counters
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

fn blocks_and_works(factory: ContextFactory, _: Handlers) -> ContextFactory {
    factory.listener::<blocks>().listener::<Works>()
}

#[test]
fn jobs_whose_handlers_did_not_begin_go_back_without_an_attempt_and_run_once_later() {
    let mut node = Node::start("did-not-begin", 2, blocks_and_works);
    node.block_threads();
    node.run(node.provider.add_many((0..20).map(|id| Work { id }))).unwrap();
    node.until(|| Some(()).filter(|()| node.counters("work").claimed == 20));
    let counts = node.until_counts(|counts| counts.running == 0);
    assert_eq!((counts.delayed, counts.dead), (20, 0), "they are as they were");

    node.gates.clear();
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..20 {
        *ran.entry(node.next()).or_default() += 1;
    }
    let expected = (0..20).map(|id| (format!("due {id} 0"), 1)).collect();
    assert_eq!(ran, expected, "each runs once, with its first attempt");
    let counts = node.until_counts(|counts| counts.running == 0);
    assert_eq!((counts.delayed, counts.dead), (0, 0));
    assert_eq!(node.stop(), [""; 0], "a run that was given back never starts");
}
