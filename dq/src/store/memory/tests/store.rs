//! The store around its topics: names, connections, queries, signals and snapshots.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::super::durable::Waits;
use super::super::places::{Place, Slot};
use super::*;
use crate::job::State;
use crate::store::memory::MemoryStore;
use crate::store::{Cursor, Interest, PageRequest, Signal, Store, StoreError};

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
    ready(link.step(Transfer::new(Sequence(1), 1_000, LEASE)));
}

#[test]
fn stores_of_one_name_are_one_store_until_the_last_is_dropped() {
    let clock = Arc::new(Still);
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
    let store = MemoryStore::new(Arc::new(Still));
    assert_eq!(ready(store.get(&key("t"), &[id("a")])), [None]);
    let request = PageRequest { state: State::Delayed, after: None, limit: 1, bytes: DEFAULT_BYTES };
    assert!(ready(store.page(&key("t"), request)).jobs.is_empty());
    assert_eq!(ready(store.counts(&key("t"))).clock, Timestamp::from_millis(START_MS));
    assert!(store.topics.all().is_empty());
}

#[test]
fn a_foreign_cursor_is_an_error() {
    let store = MemoryStore::new(Arc::new(Still));
    add(&store, "t", &["a"]);
    for state in [State::Running, State::Delayed] {
        let after = Some(Cursor { at: Timestamp::EPOCH, id: String::new() });
        let page =
            store.page(&key("t"), PageRequest { state, after, limit: 1, bytes: DEFAULT_BYTES }).now_or_never().unwrap();
        assert!(matches!(page, Err(StoreError::Other { operation: "page", .. })));
    }
}

#[test]
fn signals_go_to_the_subscribers_that_asked_for_them() {
    let store = MemoryStore::new(Arc::new(Still));
    let topic = key("t");
    let subscribe = |node, broadcasts| ready(store.signals(&topic, Interest { node, broadcasts, moves: false }));
    let (mut nodes, mut channel) = (subscribe(Some(node("n")), false), subscribe(None, true));
    drop(subscribe(Some(node("gone")), true));
    let items = vec![NewJob { deliver: Delivery::Both, ..job("a") }];
    ready(store.producer(&topic, &ProducerId::new("p")).add(Numbered { number: 1, items }));
    assert_eq!([nodes.try_next(), nodes.try_next()], [Some(Signal::Due(None)), Some(Signal::BroadcastDue)]);
    let link = store.link(&topic, &node("n"));
    ready(link.step(Publish { limit: 1, bytes: DEFAULT_BYTES, fallback: FALLBACK, expires_after: LEASE }));
    assert!(matches!(channel.try_next(), Some(Signal::Broadcast(message)) if message.id == id("a")));
    assert_eq!((nodes.try_next(), channel.try_next()), (None, None));
}

#[test]
fn a_slow_subscriber_loses_signals_and_delays_no_step() {
    let store = MemoryStore::new(Arc::new(Still));
    let topic = key("t");
    let mut signals = ready(store.signals(&topic, Interest { node: Some(node("n")), broadcasts: false, moves: false }));
    let link = store.link(&topic, &node("m"));
    for _ in 0..2_000 {
        ready(link.step(Wake));
    }
    let received = std::iter::from_fn(|| signals.try_next()).count();
    assert_eq!(received, crate::store::signals::SIGNAL_BUFFER);
}

/// A panic is a defect of dq (rule 34). A query that panics has changed nothing.
#[test]
fn a_step_that_panics_leaves_each_job_in_one_place_and_its_topic_goes_on() {
    let store = MemoryStore::new(Arc::new(Still));
    add(&store, "t", &["a"]);
    let cell = store.topics.cell(&key("t"));
    let step = |topic: &mut Topic, _: Now| -> Result<(), StoreError> {
        let place = Place::Timed(State::Delayed, Timestamp::from_millis(5));
        topic.jobs.insert(id("b"), Slot::new(record(&Metadata::default(), "1"), 0, place));
        topic.jobs.break_index();
        resume_unwind(Box::new("a planted panic"))
    };
    let step = catch_unwind(AssertUnwindSafe(|| drop(cell.ask("panic", Waits::CHANGES, step))));
    let query = || drop(cell.query::<()>("panic", |_, _| resume_unwind(Box::new("a planted panic"))));
    for panicked in [step, catch_unwind(AssertUnwindSafe(query))] {
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"a planted panic"));
    }
    let look = cell.ask("look", Waits::CHANGES, |topic, _| Ok((topic.jobs.len(), topic.jobs.is_consistent())));
    assert_eq!(ready(look), (2, true));
    claim_all(&store, "t", "n");
    assert_eq!(ready(store.counts(&key("t"))).running, 2);
}

#[test]
fn a_restored_store_is_as_it_was_at_the_snapshot() {
    let store = MemoryStore::new(Arc::new(Still));
    add(&store, "t", &["a"]);
    let snapshot = store.snapshot().unwrap();
    claim_all(&store, "t", "n");
    add(&store, "young", &["b"]);
    store.restore(&snapshot).unwrap();
    let counts = ready(store.counts(&key("t")));
    assert_eq!((counts.delayed, counts.running), (1, 0));
    assert_eq!(ready(store.counts(&key("young"))).delayed, 0);
}
