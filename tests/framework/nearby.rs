//! Providers whose coalescers run on the user's runtime, when that runtime ends or its threads are blocked. On the real clock.
//!
//! Threads are blocked on gates that the test opens, so nothing here depends on how long a step takes.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use dq::config::NodeSettings;
use dq::environment::Environment;
use dq::job::AppName;
use dq::prelude::*;
use futures_executor::block_on;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::backend::Shared;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "nearby", delay = "1h")]
struct Nearby {
    #[job(id)]
    id: usize,
}

fn runtime(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
}

/// A provider that has added its first job from a task of the runtime.
fn provider(runtime: &Runtime, shared: &Shared) -> Provider {
    provider_with(runtime, shared, NodeSettings::default())
}

fn provider_with(runtime: &Runtime, shared: &Shared, settings: NodeSettings) -> Provider {
    let provider = {
        let _entered = runtime.enter();
        let environment = Environment::of_this_runtime().unwrap();
        Provider::root(AppName::new("shop").unwrap(), shared.store(), environment, settings)
    };
    let first = runtime.spawn(provider.add(Nearby { id: 0 }));
    block_on(first).unwrap().unwrap();
    provider
}

fn waiting(provider: &Provider) -> usize {
    block_on(provider.counts::<Nearby>()).unwrap().delayed
}

/// Blocks all threads of the runtime, until the returned senders are dropped.
fn block_threads(runtime: &Runtime, threads: usize) -> Vec<Sender<()>> {
    let (blocks, blocked) = channel();
    let gates = (0..threads).map(|_| {
        let (gate, opens) = channel::<()>();
        let blocks = blocks.clone();
        runtime.spawn(async move {
            blocks.send(()).unwrap();
            assert!(opens.recv().is_err(), "the gate opens when its sender is dropped");
        });
        gate
    });
    let gates = gates.collect();
    (0..threads).for_each(|_| blocked.recv().unwrap());
    gates
}

stores!(adds_go_on_and_are_done_once_when_the_runtime_of_the_provider_ends without a runtime: memory, file, redis);
fn adds_go_on_and_are_done_once_when_the_runtime_of_the_provider_ends() {
    const JOBS: usize = 400;
    let shared = Shared::named("a-runtime-ends");
    let runtime = runtime(2);
    let mut settings = NodeSettings::default();
    settings.max_in_flight = 4; // half of the callers wait for a place
    let provider = provider_with(&runtime, &shared, settings);
    let (adds, added) = channel();
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (provider, adds) = (provider.clone(), adds.clone());
            thread::spawn(move || {
                for number in 1..=JOBS / 8 {
                    block_on(provider.add(Nearby { id: caller * JOBS + number })).unwrap();
                    adds.send(()).unwrap();
                }
            })
        })
        .collect();
    (0..JOBS / 8).for_each(|_| added.recv().unwrap());
    drop(runtime);
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    assert_eq!(waiting(&provider), 1 + JOBS);
    block_on(provider.close());
}

stores!(callers_elsewhere_are_answered_while_all_threads_of_the_runtime_are_blocked without a runtime: memory, file, redis);
fn callers_elsewhere_are_answered_while_all_threads_of_the_runtime_are_blocked() {
    let shared = Shared::named("blocked-threads");
    let runtime = runtime(2);
    let provider = provider(&runtime, &shared);
    let gates = block_threads(&runtime, 2);
    for id in 1..=3 {
        block_on(provider.add(Nearby { id })).unwrap();
    }
    assert_eq!(waiting(&provider), 4);
    block_on(provider.close());
    drop(gates);
}

/// Polls an add once and then blocks its thread, before anything else on that thread can run.
struct PostAndBlock {
    add: Pin<Box<dyn Future<Output = bool> + Send>>,
    posted: Sender<()>,
    opens: Receiver<()>,
}

impl Future for PostAndBlock {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        if let Poll::Ready(added) = self.add.as_mut().poll(cx) {
            return Poll::Ready(added);
        }
        if self.posted.send(()).is_ok() {
            assert!(self.opens.recv().is_err(), "the gate opens when its sender is dropped");
        }
        Poll::Pending
    }
}

stores!(a_caller_that_posts_and_blocks_its_thread_holds_up_neither_its_job_nor_others without a runtime: memory, file, redis);
fn a_caller_that_posts_and_blocks_its_thread_holds_up_neither_its_job_nor_others() {
    let shared = Shared::named("posts-and-blocks");
    let runtime = runtime(2);
    let provider = provider(&runtime, &shared);
    let (posted, is_posted) = channel();
    let (gate, opens) = channel::<()>();
    let add = provider.add(Nearby { id: 1 });
    let add = Box::pin(async move { add.await.is_ok() });
    let blocked = runtime.spawn(PostAndBlock { add, posted, opens });
    // An error says that the add has resolved: the memory store answers within the call.
    let _ = is_posted.recv();
    block_on(provider.add(Nearby { id: 2 })).unwrap();
    assert_eq!(waiting(&provider), 3, "the job of the blocked caller is there");
    drop(is_posted);
    drop(gate);
    assert!(block_on(blocked).unwrap());
}

stores!(a_job_that_waits_for_others_to_join_its_batch_is_added_although_its_thread_is_blocked without a runtime: memory, file, redis);
fn a_job_that_waits_for_others_to_join_its_batch_is_added_although_its_thread_is_blocked() {
    let shared = Shared::named("joins-and-blocks");
    let runtime = runtime(2);
    // No time-out of an earlier batch wakes anybody.
    let mut settings = NodeSettings::default();
    settings.call_timeout = Duration::from_secs(60);
    let provider = provider_with(&runtime, &shared, settings);
    let two = provider.add_many((1..=2).map(|id| Nearby { id }));
    block_on(runtime.spawn(two)).unwrap().unwrap().all().unwrap();
    let (posted, is_posted) = channel();
    let (gate, opens) = channel::<()>();
    let add = provider.add(Nearby { id: 3 });
    let add = Box::pin(async move { add.await.is_ok() });
    let blocked = runtime.spawn(PostAndBlock { add, posted, opens });
    let _ = is_posted.recv();
    let deadline = Instant::now() + NodeSettings::default().call_deadline / 2;
    while waiting(&provider) < 4 {
        assert!(Instant::now() < deadline, "nobody adds the job");
        thread::yield_now();
    }
    drop(is_posted);
    drop(gate);
    assert!(block_on(blocked).unwrap());
}
