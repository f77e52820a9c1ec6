//! No log and no `Debug` shows a payload.

use std::error::Error;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::time::Duration;

use dq::environment::WallClock;
use dq::job::{AppName, Codec, JobId, Metadata, NodeId, ProducerId, Record, Sequence, State, TopicKey, TopicName};
use dq::listener::AckMode;
use dq::prelude::*;
use dq::store::redis::RedisStore;
use dq::store::step::{DEFAULT_BYTES, LeaseStatus, Reconcile, Reconciled, Sequenced, Transfer};
use dq::store::{BroadcastMessage, NewJob, Numbered, PageRequest, Signal, Store};
use dq::testing::FakeJob;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};

use crate::backend;
use crate::recorder::subscribe;
use crate::scripted_listener::{HOUR, MINUTE, SECOND, start};

const SECRET: &str = "hunter2";

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "login")]
struct Login {
    password: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "login")]
struct Other {
    password: u64,
}

fn login() -> Login {
    Login { password: SECRET.into() }
}

#[delay_listener(register = false, retry = "1m x 2")]
async fn fails(_job: Job<Login>) -> Result<(), JobError> {
    Err("no".into())
}

#[delay_listener(register = false)]
async fn reads_another(_job: Job<Other>) -> Result<(), JobError> {
    Ok(())
}

#[broadcast_listener(register = false, channels = ["login"])]
struct Hears;

impl BroadcastListener for Hears {
    type Message = Other;

    async fn on_message(&self, _: Broadcast<Other>) -> Result<(), JobError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_of_no_level_shows_a_payload() {
    let (traces, _guard) = subscribe();
    let life = async |with: fn(ContextFactory) -> ContextFactory| {
        let dq = start(|factory| with(factory).broadcast_listener::<Hears>()).await;
        let jobs = dq.provider().clone();
        jobs.add(login()).id("a").await.unwrap();
        jobs.add(login()).id("b").broadcast().await.unwrap();
        jobs.add(login()).id("c").after("1d").await.unwrap();
        jobs.add(login()).id("c").replace_existing().after("1d").await.unwrap();
        jobs.delete::<Login>("c").await.unwrap();
        dq.advance(HOUR).await;
        drop(jobs.requeue::<Login>("a").await);
        dq.advance(MINUTE).await;
        dq.shutdown(SECOND).await;
    };
    life(|factory| factory.listener::<fails>()).await;
    life(|factory| factory.listener::<reads_another>()).await;
    life(|factory| factory.listener::<reads_another>().topic("login", |topic| topic.ack(AckMode::OnClaim))).await;
    let lines = traces.lines();
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(has("the job is DEAD") && has("the job is lost") && has("a broadcast listener failed"), "{lines:#?}");
    assert!(!has(SECRET), "{lines:#?}");
}

/// Adds the texts of `Debug`.
fn show(said: &mut String, what: &dyn Debug) {
    write!(said, "{what:?} {what:#?} ").unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_debug_text_of_a_provider_shows_a_payload() {
    let mut said = String::new();
    let dq = start(|factory| factory.listener::<reads_another>()).await;
    let jobs = dq.provider();
    let add = jobs.add(login()).id("waits").after("1h");
    show(&mut said, &add);
    show(&mut said, &add.await);
    show(&mut said, &jobs.add(login()).id("dead").await);
    dq.settle().await;
    let dead = jobs.get::<Login>("dead").await.unwrap().unwrap();
    assert_eq!(dead.state(), State::Dead);
    show(&mut said, &dead.details);
    show(&mut said, &dead);
    let seen = jobs.get::<Other>("waits").await.unwrap().unwrap();
    let unreadable = seen.payload().unwrap_err();
    show(&mut said, &unreadable);
    write!(said, "{unreadable} {:?} ", unreadable.source().map(ToString::to_string)).unwrap();
    show(&mut said, &jobs.waiting::<Login>().next_page().await);
    let deleted = jobs.delete::<Login>("waits").await.unwrap();
    assert!(deleted.removed.is_some());
    show(&mut said, &deleted);
    show(&mut said, &FakeJob::new(login()));
    show(&mut said, &dq::testing::job(login()));
    let id = JobId::new("a").unwrap();
    show(&mut said, &Broadcast::new(TopicName::new("login").unwrap(), id, login()));
    assert!(said.contains("bytes)") && !said.contains(SECRET), "{said}");
}

#[tokio::test]
async fn no_debug_text_of_a_store_shows_a_payload() {
    let server = RedisServer::start();
    let stores: [Arc<dyn Store>; 2] =
        [backend::store_under(Arc::new(WallClock)), Arc::new(RedisStore::new(&server.url()).unwrap())];
    for store in stores {
        let mut said = String::new();
        let key = TopicKey { app: AppName::new("shop").unwrap(), topic: TopicName::new("login").unwrap() };
        let record = Record::new(&Metadata::default(), Codec::Json, format!("\"{SECRET}\"").as_bytes());
        let new = |id: &str| NewJob::new(JobId::new(id).unwrap(), record.clone());
        show(&mut said, &new("a"));
        let producer = store.producer(&key, &ProducerId::new("p"));
        producer.add(Numbered { number: 1, items: vec![new("a"), new("b")] }).await.unwrap();
        let page = PageRequest { state: State::Delayed, after: None, limit: 10, bytes: DEFAULT_BYTES };
        show(&mut said, &store.page(&key, page.clone()).await.unwrap());
        show(&mut said, &store.export(&key, page, false).await);
        let link = store.link(&key, &NodeId::new("n"));
        let reconcile = Reconcile { last_seen: Sequence::default(), after: None, limit: 10 };
        let reconciled = link.step(reconcile).await.unwrap();
        let Sequenced::Done(Reconciled { lease_status: LeaseStatus { sequence: last_seen, .. }, .. }) = reconciled
        else {
            panic!("{reconciled:?}")
        };
        let claimed = link.step(Transfer::new(last_seen, 1, Duration::from_secs(15))).await.unwrap();
        assert!(matches!(&claimed, Sequenced::Done(answer) if answer.claims.len() == 1), "{claimed:?}");
        show(&mut said, &claimed);
        show(&mut said, &(&link, &producer, &store));
        let number = 1;
        let id = JobId::new("a").unwrap();
        show(&mut said, &Signal::Broadcast(BroadcastMessage { number, id, record: record.as_bytes().clone() }));
        assert!(said.contains("bytes)") && !said.contains(SECRET), "{said}");
    }
}
