//! What the store puts around its topics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::*;
use crate::environment::StoreClock;
use crate::job::{AppName, TopicKey, TopicName};
use crate::store::memory::MemoryStore;
use crate::store::{Cursor, Interest, JobPlace, PageRequest, Store, StoreError};

#[derive(Debug)]
struct Manual(AtomicU64);

impl StoreClock for Manual {
    fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn clock() -> Arc<Manual> {
    Arc::new(Manual(AtomicU64::new(START_MS * 1_000)))
}

fn key(topic: &str) -> TopicKey {
    TopicKey { app: AppName::new("app").unwrap(), topic: TopicName::new(topic).unwrap() }
}

/// The answer, which is always there already.
fn now<T>(answer: BoxFuture<'_, Result<T, StoreError>>) -> T {
    answer.now_or_never().expect("memory answers at once").expect("nothing fails")
}

fn add(store: &MemoryStore, topic: &str, jobs: &[&str]) {
    let items = jobs.iter().map(|text| job(text)).collect();
    now(store.producer(&key(topic), &ProducerId::new("p")).add(Numbered { number: 1, items }));
}

fn claim_all(store: &MemoryStore, topic: &str, name: &str) {
    let link = store.link(&key(topic), &node(name));
    now(link.reconcile(Reconcile { last_seen: Sequence(0), after: None, limit: 1 }));
    now(link.transfer(Transfer { last_seen: Sequence(1), limit: 1_000, lease: LEASE, fallback: FALLBACK }));
}

fn page_through(store: &MemoryStore, state: State, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = now(store.page(&key("t"), PageRequest { state, after, limit }));
        assert!(page.jobs.len() <= limit && page.jobs.iter().all(|job| job.place.state() == state));
        ids.extend(page.jobs.iter().map(|job| job.id.to_string()));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

#[test]
fn a_step_is_executed_when_it_is_called_and_not_when_it_is_awaited() {
    let store = MemoryStore::new(clock());
    let producer = store.producer(&key("t"), &ProducerId::new("p"));
    drop(producer.add(Numbered { number: 1, items: vec![job("a")] }));
    assert_eq!(now(store.counts(&key("t"))).delayed, 1);
}

#[test]
fn stores_of_one_name_are_one_while_somebody_has_it() {
    let clock = clock();
    let first = MemoryStore::named("shared by two", clock.clone());
    let second = MemoryStore::named("shared by two", clock.clone());
    add(&first, "t", &["a"]);
    assert_eq!(now(second.counts(&key("t"))).delayed, 1);
    assert_eq!(second.url(), "memory:shared by two");
    let other = MemoryStore::new(clock.clone());
    assert_eq!((now(other.counts(&key("t"))).delayed, other.url().as_str()), (0, "memory:"));
    drop((first, second));
    let later = MemoryStore::named("shared by two", clock);
    assert_eq!(now(later.counts(&key("t"))).delayed, 0);
}

#[test]
fn only_topics_that_hold_something_are_listed_in_order() {
    let store = MemoryStore::new(clock());
    for topic in ["b", "a", "c"] {
        add(&store, topic, &["1"]);
    }
    now(store
        .producer(&key("b"), &ProducerId::new("p"))
        .command(Numbered { number: 2, items: vec![Command { verb: CommandKind::Delete, id: id("1"), fence: None }] }));
    let names: Vec<_> = now(store.topics(&key("a").app)).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "c"]);
    assert!(now(store.topics(&AppName::new("another").unwrap())).is_empty());
}

#[test]
fn a_query_creates_nothing() {
    let store = MemoryStore::new(clock());
    assert_eq!(now(store.get(&key("t"), &[id("a")])), [None]);
    assert!(page_through(&store, State::Delayed, 1).is_empty());
    assert_eq!(now(store.counts(&key("t"))).clock, Timestamp::from_millis(START_MS));
    assert!(store.topics.lock().is_empty());
}

#[test]
fn pages_tell_every_job_once_in_order() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["c", "a", "b/1", "d", "e"]);
    assert_eq!(page_through(&store, State::Delayed, 2), ["a", "b/1", "c", "d", "e"]);
    claim_all(&store, "t", "n");
    now(store.producer(&key("t"), &ProducerId::new("q")).add(Numbered { number: 1, items: vec![job("0")] }));
    claim_all(&store, "t", "o");
    assert_eq!(page_through(&store, State::Running, 2), ["a", "b/1", "c", "d", "e", "0"]);
    assert!(page_through(&store, State::Delayed, 2).is_empty());
}

#[test]
fn a_page_of_runs_names_their_holders_and_a_query_by_id_does_not() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    claim_all(&store, "t", "n");
    let request = PageRequest { state: State::Running, after: None, limit: 1 };
    let fence = Fence(START_MS * 1_000);
    let paged = now(store.page(&key("t"), request)).jobs.remove(0);
    assert_eq!(paged.place, JobPlace::Running { holder: Some((node("n"), fence)) });
    let got = now(store.get(&key("t"), &[id("a")])).remove(0).unwrap();
    assert_eq!(got.place, JobPlace::Running { holder: None });
}

#[test]
fn a_cursor_of_another_making_is_an_error() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    for state in [State::Running, State::Delayed] {
        let after = Some(Cursor { at: Timestamp::EPOCH, id: String::new() });
        let page = store.page(&key("t"), PageRequest { state, after, limit: 1 }).now_or_never().unwrap();
        assert!(matches!(page, Err(StoreError::Other { operation: "page", .. })));
    }
}

#[test]
fn signals_go_to_those_who_asked_for_them() {
    let store = MemoryStore::new(clock());
    let topic = key("t");
    let subscribe = |node, broadcasts| now(store.signals(&topic, Interest { node, broadcasts }));
    let (mut nodes, mut channel) = (subscribe(Some(node("n")), false), subscribe(None, true));
    drop(subscribe(Some(node("gone")), true));
    let items = vec![NewJob { deliver: Deliver::Both, ..job("a") }];
    now(store.producer(&topic, &ProducerId::new("p")).add(Numbered { number: 1, items }));
    assert_eq!([nodes.try_next(), nodes.try_next()], [Some(Signal::Due), Some(Signal::BroadcastDue)]);
    let link = store.link(&topic, &node("n"));
    now(link.publish(Publish { limit: 1, fallback: FALLBACK, expires_after: LEASE }));
    assert!(matches!(channel.try_next(), Some(Signal::Broadcast(publish)) if publish.id == id("a")));
    assert_eq!((nodes.try_next(), channel.try_next()), (None, None));
}

#[test]
fn a_slow_subscriber_loses_signals_and_holds_nobody_up() {
    let store = MemoryStore::new(clock());
    let topic = key("t");
    let mut signals = now(store.signals(&topic, Interest { node: Some(node("n")), broadcasts: false }));
    let link = store.link(&topic, &node("m"));
    for _ in 0..2_000 {
        now(link.wake(Wake));
    }
    let last_seen = std::iter::from_fn(|| signals.try_next()).count();
    assert_eq!(last_seen, crate::store::signals::SIGNAL_BUFFER);
}

#[test]
fn a_topic_whose_step_panicked_is_stopped_and_the_others_go_on() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    let cell = store.topics.cell(&key("t"));
    let broken = std::panic::AssertUnwindSafe(|| cell.step::<()>("panic", |_, _| panic!("as it should")));
    assert!(std::panic::catch_unwind(broken).is_err());
    let counts = store.counts(&key("t")).now_or_never().unwrap();
    assert!(matches!(counts, Err(StoreError::Other { operation: "counts", .. })));
    add(&store, "other", &["a"]);
}

#[test]
fn a_restored_store_is_what_it_was() {
    let store = MemoryStore::new(clock());
    add(&store, "t", &["a"]);
    let snapshot = store.snapshot().unwrap();
    claim_all(&store, "t", "n");
    add(&store, "young", &["b"]);
    store.restore(&snapshot).unwrap();
    let counts = now(store.counts(&key("t")));
    assert_eq!((counts.delayed, counts.running), (1, 0));
    assert_eq!(now(store.counts(&key("young"))).delayed, 0);
}
