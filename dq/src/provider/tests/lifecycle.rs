//! Timers of an idle coalescer, and how coalescer and provider end; repeats of queries.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::manual_store::StoreOperator;
use super::{all_added, provider, start_add, start_adds};
use crate::config::NodeSettings;
use crate::environment::{Clock, Environment, Runtime, Seeded, Spawn, Task, TokioClock};
use crate::job::AppName;
use crate::provider::{CallError, FailureReason, Provider, TopicProvider};

/// An environment that counts its timers and keeps its tasks.
#[derive(Debug)]
struct Watched {
    clock: TokioClock,
    timers: Arc<AtomicUsize>,
    tasks: Mutex<Vec<Task>>,
}

struct Timer(Arc<AtomicUsize>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Clock for Watched {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        self.timers.fetch_add(1, Ordering::Relaxed);
        let (timer, sleep) = (Timer(Arc::clone(&self.timers)), self.clock.sleep_until(at));
        Box::pin(async move {
            sleep.await;
            drop(timer);
        })
    }
}

impl Spawn for Watched {
    fn spawn(&self, _: Runtime, task: BoxFuture<'static, ()>) -> Task {
        let handle = tokio::spawn(task).abort_handle();
        self.tasks.lock().unwrap().push(handle.clone());
        handle
    }
}

fn watched() -> (Arc<Watched>, Provider, TopicProvider, StoreOperator) {
    let watched = Watched { clock: TokioClock::new(), timers: Arc::default(), tasks: Mutex::default() };
    let watched = Arc::new(watched);
    let environment = Environment::new(watched.clone(), Arc::new(Seeded::new(1)), watched.clone());
    let (store, operator) = StoreOperator::new();
    let provider = Provider::root(AppName::new("shop").unwrap(), store, environment, NodeSettings::default());
    let topic = provider.topic("remind").unwrap();
    (watched, provider, topic, operator)
}

#[tokio::test(start_paused = true)]
async fn an_idle_coalescer_has_no_timer() {
    let (watched, _provider, topic, mut store) = watched();
    let adding = start_add(&topic, "a").await;
    let sent = store.expect(1, "add a").await;
    store.expect_nothing().await;
    assert_eq!(watched.timers.load(Ordering::Relaxed), 1);
    sent.done();
    all_added(vec![adding]).await;
    store.expect_nothing().await;
    assert_eq!(watched.timers.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn callers_get_an_error_when_the_task_is_gone() {
    let (watched, _provider, topic, mut store) = watched();
    let sent = start_add(&topic, "sent").await;
    let _unanswered = store.expect(1, "add sent").await;
    let unsent = start_add(&topic, "unsent").await;
    watched.tasks.lock().unwrap().iter().for_each(Task::abort);
    assert!(matches!(sent.await.unwrap(), Err(CallError::Unknown { .. })));
    assert!(matches!(unsent.await.unwrap(), Err(CallError::NotDone { reason: FailureReason::Stopped, .. })));
    assert!(matches!(topic.add_json("1").await, Err(CallError::NotDone { reason: FailureReason::Stopped, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_provider_sends_the_rest_and_ends() {
    let (provider, topic, mut store) = provider();
    let adding = start_adds(&topic, &["a", "b", "a"]).await;
    let first = store.expect(1, "add a b").await;
    drop((provider, topic));
    let second = store.expect(2, "add a").await;
    first.refused();
    second.done();
    store.expect(1, "add a b").await.done();
    all_added(adding).await;
    store.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_answers() {
    let (provider, topic, mut store) = provider();
    let adding = start_add(&topic, "a").await;
    let sent = store.expect(1, "add a").await;
    let closing = tokio::spawn(async move { provider.close().await });
    store.expect_nothing().await;
    assert!(!closing.is_finished());
    assert!(matches!(topic.add_json("1").await, Err(CallError::NotDone { reason: FailureReason::Stopped, .. })));
    sent.done();
    closing.await.unwrap();
    assert!(adding.is_finished());
}

#[tokio::test(start_paused = true)]
async fn closing_ends_even_if_the_store_never_answers() {
    let (provider, topic, mut store) = provider();
    let start = Instant::now();
    let adding = start_add(&topic, "a").await;
    let _unanswered = store.expect(1, "add a").await;
    provider.close().await;
    assert_eq!(start.elapsed().as_secs(), 10);
    assert!(matches!(adding.await.unwrap(), Err(CallError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_was_never_used_closes_at_once() {
    let (provider, _topic, _store) = provider();
    provider.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_query_is_repeated_until_it_succeeds_or_its_time_is_over() {
    let (_provider, topic, _store) = provider();
    assert!(topic.counts().await.is_ok(), "the first answer is a refusal");
    let start = Instant::now();
    assert!(matches!(topic.get("a").await, Err(CallError::NotDone { .. })));
    assert!((8..=10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}
