//! An import of an export is the same, for random jobs of all states, from and to every store.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use dq::environment::WallClock;
use dq::job::{
    AppName, Cause, Codec, Fence, GroupName, JobId, KeptState, Metadata, NodeId, Priority, ProducerId, Record,
    Sequence, State, TopicKey, TopicName, Weight, limits,
};
use dq::store::memory::MemoryStore;
use dq::store::redis::RedisStore;
use dq::store::step::{Reconcile, Sequenced, Transfer};
use dq::store::{BatchAnswer, Import, ImportOutcome, JobCopy, OnDuplicate, Store};
use dq::time::Timestamp;
use dq_cli::arguments::{Arguments, Command};
use dq_cli::export::Choice;
use dq_cli::progress::Progress;
use dq_cli::{Repeating, export, import};
use dq_tests::redis::RedisServer;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Metadata as a store may have them.
fn metadata(state: State) -> impl Strategy<Value = Metadata> {
    let last = (1_u64 << 48) - 1;
    let some_text = || proptest::option::of("[ -~äß€\u{1f600}\\n\"\\\\]{0,40}");
    let cause = proptest::option::of(proptest::sample::select(&Cause::ALL[..]));
    let numbers = (any::<u16>(), cause, any::<bool>(), 0..=last, proptest::option::of(0..=last), 0..=last);
    let parked = matches!(state, State::Unacked | State::Done);
    let parked_by = proptest::option::of(1..=limits::FENCE.most).prop_map(move |fence| fence.filter(|_| parked));
    let headers = vec(("[a-z]{1,9}", "[ -~ä\\t]{0,20}"), 0..4);
    let changed = (prop_oneof![Just(0), any::<u32>()], proptest::option::of(1..=last));
    let all = (numbers, parked_by, changed, some_text(), headers, some_text());
    all.prop_map(move |(numbers, parked_by, (version, first_added), retry, headers, error)| {
        let (attempts, cause, exhausted, delay, expires_at, retain) = numbers;
        Metadata {
            attempts,
            cause,
            exhausted,
            delay: Duration::from_millis(delay),
            expires_at: expires_at.map(Timestamp::from_millis),
            retain: Duration::from_millis(retain),
            parked_by: parked_by.map(Fence),
            version,
            first_added: first_added.map(Timestamp::from_millis),
            priority: Priority::ALL[usize::from(attempts) % 3],
            weight: Weight::new(1 + attempts % 7).unwrap(),
            group: (attempts % 2 == 1).then(|| GroupName::new("customer-42").unwrap()),
            group_order: if attempts % 2 == 1 { 7 } else { 0 },
            retry,
            headers,
            error,
            state: left(attempts).filter(|_| state != State::Done),
            result: left(attempts).filter(|_| state == State::Done),
        }
    })
}

/// No state or result, one that a line shows as it is, or one that no dq writes, which a line has as base64 with the whole record.
fn left(attempts: u16) -> Option<KeptState> {
    let states: [&[u8]; 4] = [b"{\"page\": [7, null]}", b"null", b"\"a\"\n", b"\xff"];
    states.get(usize::from(attempts) % 7).map(|state| KeptState::from_bytes(state))
}

fn record(state: State) -> impl Strategy<Value = Record> {
    let payload = prop_oneof![
        4 => "[ -~]{0,30}".prop_map(|text| serde_json::json!({ "text": text }).to_string().into_bytes()),
        1 => Just(b"null".to_vec()),
        1 => vec(any::<u8>(), 0..60),
        1 => Just(vec![b'1'; 9_000]),
    ];
    let proper =
        (metadata(state), payload).prop_map(|(metadata, payload)| Record::new(&metadata, Codec::Json, &payload));
    prop_oneof![9 => proper, 1 => vec(0_u8..128, 0..30).prop_map(|bytes| Record::from_bytes(bytes.into()))]
}

/// A copy; the number makes its id unlike all others of its state.
fn copy(number: usize) -> impl Strategy<Value = JobCopy> {
    let state = (proptest::sample::select(&State::TIMED[..]), 0..5).prop_map(|(state, kind)| match kind {
        0 => (true, State::Delayed),
        _ => (false, state),
    });
    let at = prop_oneof![1_000_000_000_000_u64..1_763_000_000_000, 3_000_000_000_000_u64..4_000_000_000_000];
    (state, "[ -~äß€]{0,40}", at, 0_u32..5).prop_flat_map(move |((is_broadcast, state), name, at, crashes)| {
        record(state).prop_map(move |record| {
            let has_crashes = !is_broadcast && matches!(state, State::Delayed | State::Unacked);
            let id = JobId::new(format!("{number} {name}")).unwrap();
            let copy = JobCopy::new(id, record, state, Timestamp::from_millis(at));
            JobCopy { crashes: if has_crashes { crashes } else { 0 }, is_broadcast, ..copy }
        })
    })
}

/// Any number of copies, and how many jobs a node claims.
fn topic() -> impl Strategy<Value = (Vec<JobCopy>, usize)> {
    let copies = (0_usize..30).prop_flat_map(|count| (0..count).map(copy).collect::<Vec<_>>());
    (copies, 0_usize..8)
}

pub(crate) fn choice(arguments: &[&str]) -> Choice {
    let words = ["dq", "export", "redis://host"].into_iter().chain(arguments.iter().copied());
    match Arguments::parse_from(words).command {
        Command::Export(arguments) => arguments.choice,
        _ => unreachable!("it is an export"),
    }
}

const REPEATING: Repeating = Repeating(Duration::from_secs(5));

pub(crate) async fn exported(store: &dyn Store, arguments: &[&str]) -> String {
    let mut out = Vec::new();
    export::export(store, &key().app, &choice(arguments), REPEATING, &mut out, &Progress::hidden()).await.unwrap();
    String::from_utf8(out).unwrap()
}

/// What an import does that says nothing else.
pub(crate) fn options(producer: &str) -> import::Options {
    let (on_duplicate, producer) = (OnDuplicate::Keep, ProducerId::new(producer));
    import::Options { app: None, on_duplicate, partial: false, cut_ahead: false, repeating: REPEATING, producer }
}

pub(crate) async fn imported(store: &dyn Store, text: &str, producer: &str) -> import::Report {
    import::import(store, &options(producer), text.as_bytes(), &Progress::hidden()).await.unwrap()
}

pub(crate) fn key() -> TopicKey {
    TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("orders").unwrap() }
}

/// Puts the copies into a store as they are, and lets a node claim some.
async fn fill(store: &dyn Store, copies: &[JobCopy], claims: usize) {
    let import = Import { copies: copies.to_vec(), on_duplicate: OnDuplicate::Reject, fence: Fence(9) };
    let answer = store.producer(&key(), &ProducerId::new("filler")).import(1, import).await.unwrap();
    assert_eq!(answer, BatchAnswer::Done(vec![ImportOutcome::Added; copies.len()]));
    if claims == 0 {
        return;
    }
    let link = store.link(&key(), &NodeId::new("n"));
    let reconcile = Reconcile { last_seen: Sequence(0), after: None, limit: 10 };
    let Sequenced::Done(page) = link.step(reconcile).await.unwrap() else { panic!("a first reconcile is let in") };
    link.step(Transfer::new(page.lease_status.sequence, claims, Duration::from_secs(60))).await.unwrap();
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Moves random jobs from one store to another, and back.
fn moves(cases: u32, stores: impl Fn() -> (Arc<dyn Store>, Arc<dyn Store>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let moved = runner.run(&topic(), |(copies, claims)| {
        runtime.block_on(async {
            let (old, new) = stores();
            fill(&*old, &copies, 0).await;
            let text = exported(&*old, &[]).await;
            prop_assert_eq!(text.matches("{\"job\"").count(), copies.len());
            let report = imported(&*new, &text, "p").await;
            prop_assert_eq!(report.added, copies.len() as u64);
            prop_assert_eq!(&exported(&*new, &[]).await, &text);
            let report = imported(&*new, &text, "q").await;
            prop_assert_eq!(report.added, 0, "an import that is repeated adds nothing");
            prop_assert_eq!(&exported(&*new, &[]).await, &text);

            // What a node claimed is as if it had given it back.
            let (running, _) = stores();
            fill(&*running, &copies, claims).await;
            let with_running = exported(&*running, &["--running"]).await;
            let body =
                |text| sorted(text).into_iter().filter(|line| !line.contains("\"fence\"")).map(str::to_owned).collect();
            let (of_running, of_waiting): (Vec<String>, Vec<String>) = (body(&with_running), body(&text));
            prop_assert_eq!(of_running, of_waiting);
            Ok(())
        })
    });
    moved.unwrap();
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(WallClock)))
}

/// Stores on one server, each in a keyspace of its own.
pub(crate) fn keyspaces(server: &RedisServer) -> impl Fn() -> Arc<dyn Store> {
    let (url, number) = (server.url(), std::cell::Cell::new(0));
    move || {
        number.set(number.get() + 1);
        Arc::new(RedisStore::apart(&url, &format!("dq{}:", number.get()), None).unwrap())
    }
}

#[test]
fn an_import_of_an_export_is_the_same_in_memory() {
    moves(200, || (memory(), memory()));
}

#[test]
fn an_import_of_an_export_is_the_same_on_redis() {
    let server = RedisServer::start();
    let redis = keyspaces(&server);
    moves(24, || (redis(), redis()));
}

#[test]
fn an_import_of_an_export_is_the_same_from_memory_to_redis_and_from_redis_to_memory() {
    let server = RedisServer::start();
    let redis = keyspaces(&server);
    moves(12, || (memory(), redis()));
    moves(12, || (redis(), memory()));
}
