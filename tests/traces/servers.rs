//! What a server's settings and secrets leave in the log.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use dq::environment::TokioClock;
use dq::job::{AppName, NodeId, ProducerId, TopicKey, TopicName};
use dq::prelude::*;
use dq::store::redis::RedisStore;
use dq::store::step::Wake;
use dq::store::{Interest, Numbered, Store};
use dq::testing::Harness;
use dq_tests::PacedStore;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tracing::Level;

use crate::recorder::subscribe;

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
    let lines = traces.lines();
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
    let interest = Interest { node: Some(NodeId::new("n")), broadcasts: true, moves: false };
    let (link, producer) = (store.link(&topic(), &NodeId::new("n")), store.producer(&topic(), &ProducerId::new("p")));
    let errors: [Box<dyn std::error::Error>; 4] = [
        store.open(&topic()).await.unwrap_err().into(),
        link.step(Wake).await.unwrap_err().into(),
        producer.add(Numbered { number: 1, items: Vec::new() }).await.unwrap_err().into(),
        store.signals(&topic(), interest).await.unwrap_err().into(),
    ];
    errors.iter().for_each(|error| write!(said, "{error} {error:?} ").unwrap());
    write!(said, "{link:?} {producer:?} {:?}", traces.lines()).unwrap();
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

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "swept")]
struct Sweep;

#[periodic(every = "10s", name = "sweep", register = false)]
fn sweep() -> Sweep {
    Sweep
}

#[delay_listener(register = false)]
async fn swept(_job: Job<Sweep>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_emptied_store_gets_what_the_code_says_again_and_the_log_says_what_is_gone() {
    let (traces, _guard) = subscribe();
    let store = PacedStore::start(Arc::new(TokioClock::new()));
    let dq = Harness::start_on(store.clone(), 1, |factory| {
        let factory = factory.listener::<swept>().periodic::<sweep>();
        factory.topic("swept", |topic| topic.history_max(5).history_retention("1h"))
    })
    .await;
    let jobs = dq.provider();
    jobs.add_schedule("called", Sweep).every("1h").await.unwrap();
    dq.advance(Duration::from_secs(15)).await;
    let warned =
        || traces.events(Level::WARN).into_iter().filter(|line| line.contains("the store was emptied")).count();
    assert_eq!(warned(), 0);
    let all = store.keyspace().key(format!("{}:swept", jobs.app()), "*");
    const EMPTY: &str = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end return 1";
    store.keyspace().connect().command(&["EVAL", EMPTY, "0", &all]);
    dq.advance(Duration::from_secs(60)).await;
    assert_eq!(warned(), 1);
    let sweep = jobs.schedule::<Sweep>("sweep").await.unwrap().unwrap().details.unwrap();
    assert!(jobs.schedule::<Sweep>("called").await.unwrap().is_none());
    let last = sweep.last_job.expect("it has ticked again").to_string();
    let history = jobs.inspect().history("swept", last.as_str()).await.unwrap();
    assert!(!history.is_empty(), "{last}");
    dq.advance(Duration::from_secs(600)).await;
    assert_eq!(warned(), 0);
}
