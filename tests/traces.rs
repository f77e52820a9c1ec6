//! What dq reports to `tracing` about a job: spans for add, claim, run and settle, and never a payload.
//!
//! This is a test program of its own in which every test has a subscriber. `tracing` caches for the whole process whether a
//! call site has one, so beside tests without a subscriber these tests could miss events.

#[allow(dead_code, reason = "the framework tests use the rest")]
#[path = "framework/backend/memory.rs"]
mod backend;
#[allow(dead_code, reason = "the framework tests use the rest")]
#[path = "framework/scripted_listener.rs"]
mod scripted_listener;

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

use dq::environment::TokioClock;
use dq::job::{AppName, NodeId, ProducerId, TopicKey, TopicName};
use dq::store::redis::RedisStore;
use dq::store::step::Wake;
use dq::store::{Interest, Numbered, Store};
use dq::testing::Harness;
use dq_tests::redis::RedisServer;
use dq_tests::{Fault, FaultyStore};
use scripted_listener::{HOUR, Script, default_settings, test_job};

/// Records every span and event of dq as a line; the line of an event begins with the name of its span.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lines: Vec<String>,
    spans: BTreeMap<u64, String>,
    entered: Vec<u64>,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Traces {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("dq::")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        let mut state = self.0.lock().unwrap();
        state.lines.push(text.0);
        let id = state.spans.len() as u64 + 1;
        state.spans.insert(id, span.metadata().name().to_owned());
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut state = self.0.lock().unwrap();
        let within = state.entered.last().map(|id| format!("{}: ", state.spans[id])).unwrap_or_default();
        let mut text = Text(within);
        event.record(&mut text);
        state.lines.push(text.0);
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }
}

/// Runs a job that fails twice, with a payload that must stay secret.
async fn fail() {
    let script = Script::fails("no");
    let dq = script.start(|topic| topic.retry("1m")).await;
    dq.provider().topic("work").unwrap().add_json(r#"{"id": "the secret"}"#).id("a").await.unwrap();
    dq.advance(HOUR).await;
}

/// Subscribes on this thread.
fn subscribe() -> (Traces, DefaultGuard) {
    let traces = Traces::default();
    let guard = tracing::subscriber::set_default(traces.clone());
    (traces, guard)
}

#[tokio::test(start_paused = true)]
async fn a_job_leaves_spans_of_add_claim_run_and_settle_with_id_attempt_and_fence_and_no_payload() {
    let (traces, _guard) = subscribe();
    fail().await;
    let lines = std::mem::take(&mut traces.0.lock().unwrap().lines);
    let has = |what: &[&str]| lines.iter().any(|line| what.iter().all(|part| line.contains(part)));
    assert!(has(&["dq.add topic=work job.id=a"]), "{lines:#?}");
    assert!(has(&["dq.claim topic=work jobs=1"]), "{lines:#?}");
    assert!(has(&["dq.claim: ", "claimed", "job.id=a attempt=1 fence="]), "{lines:#?}");
    assert!(has(&["dq.run topic=work job.id=a attempt=1 fence="]), "{lines:#?}");
    assert!(has(&["dq.settle topic=work jobs=1"]), "{lines:#?}");
    assert!(has(&["dq.settle: ", "settled", "job.id=a attempt=2 fence=", "change=Dead", "verdict=Done"]), "{lines:#?}");
    assert!(!has(&["secret"]), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_logs_of_a_handler_are_within_the_span_of_its_run() {
    let (traces, _guard) = subscribe();
    let script = Script::new(|_, channel| async {
        tracing::info!(target: "dq::of_the_user", "hello");
        Ok(channel.ack())
    });
    let dq = script.start(default_settings).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let lines = std::mem::take(&mut traces.0.lock().unwrap().lines);
    assert!(lines.iter().any(|line| line == "dq.run:  message=hello"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusing_store_is_logged_once_with_its_reason_and_once_when_it_answers_again() {
    let (traces, _guard) = subscribe();
    let (store, faults) = FaultyStore::over(backend::store_under(Arc::new(TokioClock::new())));
    let script = Script::acks();
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, default_settings)).await;
    faults.fail_all(Fault::Refused);
    dq.provider().topic("work").unwrap().add_json("1").id("a").await.unwrap_err();
    dq.advance(HOUR).await;
    faults.clear();
    dq.advance(HOUR).await;
    let lines = std::mem::take(&mut traces.0.lock().unwrap().lines);
    let logged = |what: &str| lines.iter().filter(|line| line.contains(what)).collect::<Vec<_>>();
    let refuses = logged("the store refused a request; dq sends it again");
    assert!(refuses.len() == 1 && refuses[0].contains("error=the store refuses"), "{refuses:#?}");
    assert_eq!(logged("the store answers again").len(), 1, "{lines:#?}");
}

fn topic() -> TopicKey {
    TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("work").unwrap() }
}

#[tokio::test]
async fn an_unsuitable_server_is_warned_about_once_at_the_first_contact() {
    let (traces, _guard) = subscribe();
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru", "--appendonly", "no"]);
    let store = RedisStore::new(&server.url()).unwrap();
    for _ in 0..2 {
        store.topics(&topic().app).await.unwrap();
        store.open(&topic()).await.unwrap();
    }
    let lines = std::mem::take(&mut traces.0.lock().unwrap().lines);
    let logged = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(logged("`maxmemory-policy` is `allkeys-lru`"), 1, "{lines:#?}");
    assert_eq!(logged("`appendonly` is off"), 1, "{lines:#?}");
    assert_eq!(logged(&format!("store=\"{}\"", server.url())), 2, "{lines:#?}");
}

/// Returns everything that a store logs and reports, and its own debug text.
async fn everything_reported(url: &str) -> String {
    let (traces, _guard) = subscribe();
    let store = RedisStore::new(url).unwrap();
    let mut said = format!("{} {store:?} ", store.url());
    let interest = Interest { node: Some(NodeId::new("n")), broadcasts: true };
    let (link, producer) = (store.link(&topic(), &NodeId::new("n")), store.producer(&topic(), &ProducerId::new("p")));
    let errors: [Box<dyn std::error::Error>; 4] = [
        store.open(&topic()).await.unwrap_err().into(),
        link.step(Wake).await.unwrap_err().into(),
        producer.add(Numbered { number: 1, items: Vec::new() }).await.unwrap_err().into(),
        store.signals(&topic(), interest).await.unwrap_err().into(),
    ];
    errors.iter().for_each(|error| write!(said, "{error} {error:?} ").unwrap());
    write!(said, "{link:?} {producer:?} {:?}", traces.0.lock().unwrap().lines).unwrap();
    said
}

#[tokio::test]
async fn a_password_is_in_no_log_no_error_and_no_debug_text() {
    let server = RedisServer::start_with(&["--user", "mallory", "on", ">s3cret", "-@all"]);
    for (password, says) in [("s3cret", "NOPERM"), ("gu3ssed", "WRONGPASS")] {
        let said = everything_reported(&server.url_for(&format!("mallory:{password}"))).await;
        assert!(said.contains(says) && said.contains("redis://***@127.0.0.1"), "{said}");
        assert!(!said.contains(password) && !said.contains("s3cret"), "{said}");
    }
    let unreachable = server.url_for("mallory:gu3ssed");
    drop(server);
    let said = everything_reported(&unreachable).await;
    assert!(said.contains("refused") && !said.contains("gu3ssed"), "{said}");
}
