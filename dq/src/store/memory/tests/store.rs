//! The store around its topics: names, connections, queries, signals and snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::super::durable::Waits;
use super::*;
use crate::environment::StoreClock;
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::memory::MemoryStore;
use crate::store::{Cursor, Interest, PageRequest, Signal, Store, StoreError};

/// A clock that stands still.
#[derive(Debug)]
struct ManualClock(AtomicU64);

impl StoreClock for ManualClock {
    fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock(AtomicU64::new(START_MS * 1_000)))
}

fn key(topic: &str) -> TopicKey {
    TopicKey { app: AppName::new("app").unwrap(), topic: TopicName::new(topic).unwrap() }
}

/// The answer, which is always ready.
fn ready<T>(answer: BoxFuture<'_, Result<T, StoreError>>) -> T {
    answer.now_or_never().expect("memory answers at once").expect("nothing fails")
}

fn add(store: &MemoryStore, topic: &str, jobs: &[&str]) {
    let items = jobs.iter().map(|text| job(text)).collect();
    ready(store.producer(&key(topic), &ProducerId::new("p")).add(Numbered { number: 1, items }));
}

fn claim_all(store: &MemoryStore, topic: &str, name: &str) {
    let link = store.link(&key(topic), &node(name));
    ready(link.step(Reconcile { last_seen: Sequence(0), after: None, limit: 1 }));
    ready(link.step(Transfer {
        last_seen: Sequence(1),
        limit: 1_000,
        bytes: USUAL_BYTES,
        lease: LEASE,
        fallback: FALLBACK,
        lookahead: Duration::ZERO,
    }));
}

#[test]
fn stores_of_one_name_are_one_store_until_the_last_is_dropped() {
    let clock = clock();
    let first = MemoryStore::named("shared by two", clock.clone());
    let second = MemoryStore::named("shared by two", clock.clone());
    add(&first, "t", &["a"]);
    assert_eq!(ready(second.counts(&key("t"))).delayed, 1);
    assert_eq!(second.url(), "memory:shared by two");
    let other = MemoryStore::new(clock.clone());
    assert_eq!((ready(other.counts(&key("t"))).delayed, other.url().as_str()), (0, "memory:"));
    drop((first, second));
    let later = MemoryStore::named("shared by two", clock);
    assert_eq!(ready(later.counts(&key("t"))).delayed, 0);
}

#[test]
fn a_query_creates_nothing() {
    let store = MemoryStore::new(clock());
    assert_eq!(ready(store.get(&key("t"), &[id("a")])), [None]);
    let request = PageRequest { state: State::Delayed, after: None, limit: 1, bytes: USUAL_BYTES };
    assert!(ready(store.page(&key("t"), request)).jobs.is_empty());
    assert_eq!(ready(store.counts(&key("t"))).clock, Timestamp::from_millis(START_MS));
    assert!(store.topics.all().is_empty());
}

#[test]
fn a_foreign_cursor_is_an_error() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    for state in [State::Running, State::Delayed] {
        let after = Some(Cursor { at: Timestamp::EPOCH, id: String::new() });
        let page =
            store.page(&key("t"), PageRequest { state, after, limit: 1, bytes: USUAL_BYTES }).now_or_never().unwrap();
        assert!(matches!(page, Err(StoreError::Other { operation: "page", .. })));
    }
}

#[test]
fn signals_go_to_the_subscribers_that_asked_for_them() {
    let store = MemoryStore::new(clock());
    let topic = key("t");
    let subscribe = |node, broadcasts| ready(store.signals(&topic, Interest { node, broadcasts, moves: false }));
    let (mut nodes, mut channel) = (subscribe(Some(node("n")), false), subscribe(None, true));
    drop(subscribe(Some(node("gone")), true));
    let items = vec![NewJob { deliver: Deliver::Both, ..job("a") }];
    ready(store.producer(&topic, &ProducerId::new("p")).add(Numbered { number: 1, items }));
    assert_eq!([nodes.try_next(), nodes.try_next()], [Some(Signal::Due(None)), Some(Signal::BroadcastDue)]);
    let link = store.link(&topic, &node("n"));
    ready(link.step(Publish { limit: 1, bytes: USUAL_BYTES, fallback: FALLBACK, expires_after: LEASE }));
    assert!(matches!(channel.try_next(), Some(Signal::Broadcast(message)) if message.id == id("a")));
    assert_eq!((nodes.try_next(), channel.try_next()), (None, None));
}

#[test]
fn a_slow_subscriber_loses_signals_and_delays_no_step() {
    let store = MemoryStore::new(clock());
    let topic = key("t");
    let mut signals = ready(store.signals(&topic, Interest { node: Some(node("n")), broadcasts: false, moves: false }));
    let link = store.link(&topic, &node("m"));
    for _ in 0..2_000 {
        ready(link.step(Wake));
    }
    let received = std::iter::from_fn(|| signals.try_next()).count();
    assert_eq!(received, crate::store::signals::SIGNAL_BUFFER);
}

#[test]
fn a_topic_goes_on_when_a_step_or_a_query_panics() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    let cell = store.topics.cell(&key("t"));
    let step = || drop(cell.ask::<()>("panic", Waits::CHANGES, |_, _| panic!("the test wants this panic")));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).is_err());
    let query = || cell.query::<()>("panic", |_, _| panic!("the test wants this panic"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(query)).is_err());
    claim_all(&store, "t", "n");
    assert_eq!(ready(store.counts(&key("t"))).running, 1);
}

#[test]
fn a_restored_store_is_as_it_was_at_the_snapshot() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    let snapshot = store.snapshot().unwrap();
    claim_all(&store, "t", "n");
    add(&store, "young", &["b"]);
    store.restore(&snapshot).unwrap();
    let counts = ready(store.counts(&key("t")));
    assert_eq!((counts.delayed, counts.running), (1, 0));
    assert_eq!(ready(store.counts(&key("young"))).delayed, 0);
}
