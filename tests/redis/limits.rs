//! Each limit of the format, at it and beyond it, through each door: adds, batches, verbs, imports, what another program wrote into the
//! keys of a topic, and what it published. The samples come from the table of limits. `dq import` and the JSON API have tests of their
//! own, and so has the replay of a journal.

use std::time::Duration;

use dq::config::NodeSettings;
use dq::inspect::{Finding, FindingCode};
use dq::job::{Fence, JobId, ProducerId, State, limits};
use dq::prelude::*;
use dq::provider::{CallError, Invalid, TopicProvider};
use dq::store::memory::MemoryStore;
use dq::store::redis::RedisStore;
use dq::store::{
    AddOutcome, BatchAnswer, ChangeKind, ChangeVerdict, Import, JobChange, JobCopy, Numbered, OnDuplicate, Store,
    StoreError,
};
use dq::time::Timestamp;
use dq_tests::limits::{Sample, samples};
use dq_tests::redis::{RedisServer, ask};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::topic::{factory, job, key, provider, until};

/// The limits that a new job can break.
fn is_of_store(sample: &Sample) -> bool {
    !matches!(sample.limit.name, "TIME" | "FENCE" | "POSITION")
}

fn is_refused<T: std::fmt::Debug>(answer: &Result<T, StoreError>) -> bool {
    answer.as_ref().is_err_and(|error| matches!(error, StoreError::OverLimit { .. }) && error.nothing_done())
}

async fn batches_keep_to(store: &dyn Store) {
    let producer = store.producer(&key("t"), &ProducerId::new("p"));
    let mut number = 0;
    for sample in samples().into_iter().filter(is_of_store) {
        let Ok(id) = JobId::new(sample.id()) else {
            assert!(!sample.is_within(), "{sample:?}");
            continue;
        };
        let new = sample.job(id.clone());
        number += 1;
        let added = producer.add(Numbered { number, items: vec![job(&format!("other{number}")), new] }).await;
        match sample.is_within() {
            true => assert_eq!(added.unwrap(), BatchAnswer::Done(vec![AddOutcome::Added; 2]), "{sample:?}"),
            false => assert!(is_refused(&added), "{sample:?}: {added:?}"),
        }
        if !sample.is_of_record() {
            continue;
        }
        let what = ChangeKind::Update(sample.record());
        // What is over a limit is refused before the job is looked for, and what bounds a schedule bounds no other job.
        let has_its_id = sample.is_within() || sample.every().is_some();
        let id_of_change = if has_its_id { id.clone() } else { job("other1").id };
        let change = JobChange::new(id_of_change, what);
        number += 1;
        let changed = producer.change(Numbered { number, items: vec![change] }).await;
        // An update keeps the metadata of the job, and has none; a record with others is refused by the same limits.
        match changed {
            Ok(BatchAnswer::Done(outcomes)) => {
                assert!(sample.is_within(), "{sample:?}");
                assert!(outcomes[0].verdict == ChangeVerdict::Changed, "{sample:?}: {outcomes:?}");
            }
            other => assert!(!sample.is_within() && is_refused(&other), "{sample:?}: {other:?}"),
        }
        let copy = JobCopy::new(id, sample.record(), State::Dead, Timestamp::from_millis(1));
        number += 1;
        let import = Import { copies: vec![copy], on_duplicate: OnDuplicate::Replace, fence: Fence(0) };
        let imported = producer.import(number, import).await;
        let is_ahead = sample.limit == limits::ORDER && sample.size == limits::ORDER.most;
        match imported {
            Err(StoreError::AheadOfClock { .. }) => assert!(is_ahead, "{sample:?}"),
            imported if sample.is_within() => assert!(imported.is_ok() && !is_ahead, "{sample:?}: {imported:?}"),
            imported => assert!(is_refused(&imported), "{sample:?}: {imported:?}"),
        }
    }
    for sample in samples().into_iter().filter(|sample| matches!(sample.limit.name, "TIME" | "FENCE")) {
        let is_time = sample.limit == limits::TIME;
        let (at, fence) = if is_time { (sample.size, 0) } else { (1, sample.size) };
        let (id, record, at) = (job(&sample.name()).id, job("x").record, Timestamp::from_millis(at));
        let copy = JobCopy::new(id, record, State::Dead, at);
        number += 1;
        let import = Import { copies: vec![copy], on_duplicate: OnDuplicate::Replace, fence: Fence(fence) };
        let imported = producer.import(number, import).await;
        // At the limit of a fence, the clock alone refuses it.
        let is_ahead = matches!(imported, Err(StoreError::AheadOfClock { number, .. }) if number == sample.size);
        let is_right = if sample.is_within() { imported.is_ok() || is_ahead } else { is_refused(&imported) };
        assert!(is_right && is_ahead == (fence == limits::FENCE.most), "{sample:?}: {imported:?}");
    }
}

#[tokio::test]
async fn batches_of_every_store_keep_to_every_limit_and_do_nothing_beyond_it() {
    batches_keep_to(&MemoryStore::new(std::sync::Arc::new(dq::environment::WallClock))).await;
    let server = RedisServer::start();
    batches_keep_to(&RedisStore::new(&server.url()).unwrap()).await;
}

async fn called(topic: &TopicProvider, sample: &Sample) -> [Result<(), CallError>; 2] {
    if let Some(every) = sample.every() {
        let name = sample.id().strip_prefix("dq:schedule:").unwrap_or_default().to_owned();
        let add = || topic.add_schedule_json(name.clone(), sample.payload()).every(every);
        let added = add().await.map(drop);
        return [added, add().replace_existing().await.map(drop)];
    }
    let mut add = topic.add_json(sample.payload()).id(sample.id()).after("1h");
    for (name, value) in sample.texts().headers {
        add = add.header(name, value);
    }
    if let Some(retry) = sample.texts().retry {
        add = add.retry(retry);
    }
    let added = add.await.map(drop);
    let updated = match added {
        Ok(()) => topic.update_json(sample.id(), sample.payload()).await.map(drop),
        Err(_) => topic.update_json("there", sample.payload()).await.map(drop),
    };
    [added, updated]
}

#[tokio::test]
async fn adds_and_verbs_keep_to_every_limit_that_a_caller_can_reach() {
    for more in [0, 1] {
        let mut settings = NodeSettings::default();
        settings.max_payload = limits::PAYLOAD.most as usize + more;
        let environment = dq::environment::Environment::of_this_runtime().unwrap();
        let store = std::sync::Arc::new(MemoryStore::new(std::sync::Arc::new(dq::environment::WallClock)));
        let provider = dq::Provider::root(key("t").app, store, environment, settings);
        let topic = provider.topic("t").unwrap();
        topic.add_json("1").id("there").after("1h").await.unwrap();
        for sample in samples() {
            // No caller names a number that the store gives, an error or a state, delays have a test of their own, and a retry policy of 4 KiB is none.
            if !sample.is_of_record() || matches!(sample.limit.name, "ORDER" | "ERROR" | "STATE" | "RETRY") {
                continue;
            }
            let [added, updated] = called(&topic, &sample).await;
            let only_id = matches!(sample.limit.name, "ID" | "HEADERS" | "CONTROLS");
            match sample.is_within() {
                true => assert!(added.is_ok() && updated.is_ok(), "{} {added:?} {updated:?}", sample.name()),
                false => {
                    assert!(matches!(added, Err(CallError::Invalid(_) | CallError::NotDone { .. })), "{added:?}");
                    assert!(only_id || updated.is_err(), "{} {updated:?}", sample.name());
                    let is_of_store = more > 0 && sample.limit == limits::PAYLOAD;
                    assert!(is_of_store || matches!(added, Err(CallError::Invalid(_))), "{} {added:?}", sample.name());
                }
            }
        }
        let control = topic.add_json("1").header("a\x1b[2J", "b").await.unwrap_err();
        assert!(matches!(control, CallError::Invalid(Invalid::OverLimit(_))), "{control:?}");
        for text in ["a\0b", "a\rb", "a\nb", "a\x1bb"] {
            assert!(
                topic.add_json("1").header("h", text).await.is_err()
                    && topic.add_json("1").header(text, "v").await.is_err()
            );
        }
        topic.add_json("1").header("h", "tab\tand ü").await.unwrap();
    }
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "t")]
struct Text(String);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "news", deliver = "broadcast")]
struct News(String);

#[delay_listener(register = false)]
async fn run(job: Job<Text>, ran: &UnboundedSender<String>) -> Result<(), JobError> {
    Ok(ran.send(job.id().to_string())?)
}

#[broadcast_listener(channels = ["news"], register = false)]
struct Hears(UnboundedSender<String>);

impl BroadcastListener for Hears {
    type Message = News;

    async fn on_message(&self, news: Broadcast<News>) -> Result<(), JobError> {
        Ok(self.0.send(news.id.to_string())?)
    }
}

async fn node(server: &RedisServer) -> (Context, UnboundedReceiver<String>) {
    let (sender, ran) = unbounded_channel();
    let factory = factory(&server.url());
    let node = factory.listener::<run>().broadcast_listener::<Hears>().provide(sender).start().await.unwrap();
    node.ready().await;
    (node, ran)
}

/// Writes a job that is due into the keys of the topic, as another program may.
fn write(server: &RedisServer, id: &str, record: &[u8]) {
    let mut stream = server.connect();
    let words: [&[u8]; 4] = [b"HSET", b"dq:{shop:t}:jobs", id.as_bytes(), record];
    ask(&mut stream, &words);
    ask(&mut stream, &["ZADD", "dq:{shop:t}:delayed", "1", id]);
    ask(&mut stream, &["PUBLISH", "dq:{shop:t}:wake", "due"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_program_wrote_runs_within_a_limit_and_is_dead_with_its_payload_beyond_it() {
    let server = RedisServer::start();
    let (node, mut ran) = node(&server).await;
    let topic = node.provider().topic("t").unwrap();
    for sample in samples().into_iter().filter(Sample::is_of_record) {
        let (id, record) = (sample.id(), sample.record());
        if id.is_empty() {
            continue; // Redis has such a field, and no dq reads it: that is the same as an id that is too long.
        }
        write(&server, &id, record.as_bytes());
        // A header with a control character runs: it breaks nothing.
        if sample.is_kept() || sample.limit == limits::CONTROLS {
            let got = ran.recv().await.unwrap();
            let name = id.strip_prefix("dq:schedule:").map(|name| format!("dq:tick:{name}@"));
            assert!(got.starts_with(&name.unwrap_or(id.clone())), "{got} for {}", sample.name());
        } else if JobId::new(&id).is_err() {
            until(|| server.command(&["ZCARD", "dq:{shop:t}:delayed"]) == ":0").await;
        } else {
            let dead = loop {
                let found = topic.get(&id).await.unwrap();
                match found.filter(|job| job.state() == State::Dead) {
                    Some(dead) => break dead,
                    None => tokio::task::yield_now().await,
                }
            };
            let details = dead.details.as_ref().unwrap();
            assert_eq!(details.cause, Some(dq::job::Cause::Decode), "{}", sample.name());
            assert!(details.error.as_ref().unwrap().contains(sample.limit.what), "{details:?}");
            assert!(details.headers.is_empty());
            assert_eq!(dead.raw_payload().unwrap().1, record.payload().unwrap().1, "{}", sample.name());
        }
        if sample.every().is_some() {
            node.provider().topic("t").unwrap().delete(&id).await.unwrap();
            ask(&mut server.connect(), &["DEL", "dq:{shop:t}:delayed", "dq:{shop:t}:jobs", "dq:{shop:t}:dead"]);
            while ran.try_recv().is_ok() {}
        }
    }
    let restarts: Vec<_> = node.health().topics.iter().map(|topic| topic.counters.restarts).collect();
    assert_eq!(restarts, [0]);
    node.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn the_doctor_names_a_job_that_is_over_a_limit_and_makes_it_dead_with_its_payload() {
    let server = RedisServer::start();
    let provider = provider(&server.url());
    let topic = provider.topic("t").unwrap();
    let wanted = |sample: &Sample| {
        sample.is_of_record() && !sample.is_kept() && !matches!(sample.limit, limits::ID | limits::CONTROLS)
    };
    for sample in samples().into_iter().filter(wanted) {
        topic.add_json("1").id("sound").after("1h").replace_existing().await.unwrap();
        write(&server, &sample.id(), sample.record().as_bytes());
        let mut doctor = provider.inspect().doctor(Some("t")).unwrap();
        while doctor.step().await.unwrap().is_some() {}
        let is_over = |finding: &&Finding| finding.code == FindingCode::OverLimit;
        let found: Vec<_> = doctor.findings().iter().filter(is_over).collect();
        assert_eq!(found.len(), 1, "{}: {found:?}", sample.name());
        assert_eq!(found[0].id.as_deref(), Some(&*sample.id()));
        assert!(found[0].text.contains(sample.limit.what), "{}", found[0].text);
        while doctor.repair().await.unwrap().is_some() {}
        let dead = topic.get(sample.id()).await.unwrap().unwrap();
        assert_eq!(dead.state(), State::Dead, "{}", sample.name());
        assert_eq!(dead.raw_payload().unwrap().1, sample.record().payload().unwrap().1, "{}", sample.name());
        let mut again = provider.inspect().doctor(Some("t")).unwrap();
        while again.step().await.unwrap().is_some() {}
        assert!(!again.findings().iter().any(|finding| finding.code == FindingCode::OverLimit), "{}", sample.name());
        topic.delete(sample.id()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_that_another_program_published_arrives_within_a_limit_and_fails_beyond_it() {
    let server = RedisServer::start();
    let (node, mut arrived) = node(&server).await;
    let mut failed = 0;
    let wanted = |sample: &Sample| matches!(sample.limit.name, "PAYLOAD" | "HEADERS" | "RETRY" | "ERROR" | "ID");
    for (n, sample) in samples().into_iter().filter(wanted).enumerate() {
        let id = sample.id();
        let record = sample.record();
        let message = [format!("{} {id}\n", n + 1).as_bytes(), record.as_bytes()].concat();
        let words: [&[u8]; 3] = [b"PUBLISH", b"dq:{shop:news}:broadcast", &message];
        ask(&mut server.connect(), &words);
        match (sample.is_within(), sample.limit == limits::ID) {
            (true, _) => assert_eq!(arrived.recv().await.unwrap(), id),
            (false, true) => {} // it is no broadcast
            (false, false) => {
                failed += 1;
                until(|| node.health().channels[0].failed >= failed).await;
            }
        }
    }
    assert!(arrived.try_recv().is_err());
    node.shutdown(Duration::ZERO).await;
}

/// A signal is a hint: a node reads the pending command before it stops a handler.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_that_no_command_stands_behind_stops_no_handler() {
    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "long")]
    struct Long;

    #[delay_listener(register = false)]
    async fn long(job: Job<Long>, ran: &UnboundedSender<String>) -> Result<(), JobError> {
        ran.send("began".into())?;
        job.cancelled().await;
        Ok(ran.send("cancelled".into())?)
    }

    let server = RedisServer::start();
    let (sender, mut ran) = unbounded_channel::<String>();
    let factory = factory(&server.url());
    let node = factory.listener::<long>().provide(sender).start().await.unwrap();
    node.ready().await;
    let topic = node.provider().topic("long").unwrap();
    topic.add_json("null").id("a").await.unwrap();
    assert_eq!(ran.recv().await.unwrap(), "began");
    let reads = || server.calls().get("evalsha").copied().unwrap_or_default();
    let before = reads();
    server.command(&["PUBLISH", "dq:{shop:long}:wake", "command cancel a"]);
    until(|| reads() != before).await;
    // The answer to what the signal made the node read comes before that to a command that is sent later.
    topic.add_json("null").id("b").after("1h").await.unwrap();
    topic.delete("b").await.unwrap();
    assert!(ran.try_recv().is_err(), "no command cancels the job");
    topic.delete("a").await.unwrap();
    server.command(&["PUBLISH", "dq:{shop:long}:wake", "command cancel a"]);
    topic.get("a").await.unwrap();
    assert!(ran.try_recv().is_err(), "a delete lets the handler run on");
    topic.cancel("a").await.unwrap();
    assert_eq!(ran.recv().await.unwrap(), "cancelled");
    node.shutdown(Duration::ZERO).await;
}
