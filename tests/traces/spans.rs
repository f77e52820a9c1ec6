//! The spans of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use dq::prelude::*;
use dq::telemetry::SPANS;
use dq::testing::Harness;
use serde::{Deserialize, Serialize};

use crate::recorder::subscribe;
use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, TestJob, default_settings, start, test_job};

/// Runs a job that fails twice, with a payload that must stay secret.
async fn fail() {
    let script = Script::fails("no");
    let dq = script.start(|topic| topic.retry("1m")).await;
    dq.provider().topic("work").unwrap().add_json(r#"{"id": "the secret"}"#).id("a").await.unwrap();
    dq.advance(HOUR).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_leaves_spans_of_add_claim_run_and_settle_with_id_attempt_and_fence_and_no_payload() {
    let (traces, _guard) = subscribe();
    fail().await;
    let lines = traces.lines();
    let has = |what: &[&str]| lines.iter().any(|line| what.iter().all(|part| line.contains(part)));
    assert!(has(&["dq.add topic=work job.id=a"]), "{lines:#?}");
    assert!(has(&["dq.claim topic=work jobs=1"]), "{lines:#?}");
    assert!(has(&["dq.claim: ", "claimed", "job.id=a attempt=1 fence="]), "{lines:#?}");
    assert!(has(&["dq.run topic=work job.id=a attempt=1 fence="]), "{lines:#?}");
    assert!(has(&["dq.settle topic=work jobs=1"]), "{lines:#?}");
    assert!(has(&["dq.settle: ", "DEAD", "topic=work job.id=a attempt=2 fence=", "outcome=\"DEAD\""]), "{lines:#?}");
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
    let lines = traces.lines();
    assert!(lines.iter().any(|line| line == "dq.run:  message=hello"), "{lines:#?}");
}

#[delay_listener(register = false, batch_size = 20)]
pub(crate) async fn together(_: Batch<TestJob>) -> Result<(), JobError> {
    Ok(())
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "prices", deliver = "broadcast")]
pub(crate) struct Prices;

#[broadcast_listener(channels = ["prices"], register = false)]
pub(crate) struct Shown;

impl BroadcastListener for Shown {
    type Message = Prices;

    async fn on_message(&self, _: Broadcast<Prices>) -> Result<(), JobError> {
        Ok(())
    }
}

async fn run_a_batch_and_a_broadcast() {
    let dq: Harness = start(|factory| factory.batch_listener::<together>().broadcast_listener::<Shown>()).await;
    dq.provider().add_many((0..3).map(test_job)).await.unwrap().all().unwrap();
    dq.provider().add(Prices).await.unwrap();
    dq.advance(MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn the_table_has_every_span_with_its_level_and_fields_and_no_other() {
    let (traces, _guard) = subscribe();
    fail().await;
    run_a_batch_and_a_broadcast().await;
    let mut seen: BTreeMap<_, (_, BTreeSet<_>)> = BTreeMap::new();
    for (name, level, fields) in traces.spans() {
        seen.entry(name).or_insert((level, BTreeSet::new())).1.extend(fields);
    }
    let listed: BTreeMap<_, _> =
        SPANS.iter().map(|span| (span.name, (span.level, span.fields.iter().copied().collect()))).collect();
    assert_eq!(seen, listed);
}

/// The lines about one job.
fn about(lines: &[String], id: &str) -> Vec<String> {
    let wanted = format!("job.id={id}");
    lines.iter().filter(|line| line.split([' ', ':']).any(|word| *word == wanted)).cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_job_can_be_followed_by_its_id_alone() {
    let (traces, _guard) = subscribe();
    let parked = AtomicBool::new(false);
    let script = Script::new(move |job, channel| {
        let decided = match job.attempt() {
            0 => Err("no".into()),
            _ if !parked.swap(true, Relaxed) => Ok(channel.park()),
            _ => Ok(channel.ack()),
        };
        std::future::ready(decided)
    });
    let dq = script.start(|topic| topic.retry("1m")).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.provider().add(test_job("other")).after(delay!("9h")).await.unwrap();
    dq.advance(MINUTE + SECOND).await;
    dq.provider().requeue::<TestJob>("a").await.unwrap().or_error_if_unchanged().unwrap();
    dq.advance(SECOND).await;
    dq.provider().add(test_job("a")).after(delay!("1h")).await.unwrap();
    dq.provider().reschedule::<TestJob>("a", delay!("2h")).await.unwrap();
    dq.provider().delete::<TestJob>("a").await.unwrap();
    let life = [
        "dq.add topic=work job.id=a",
        "claimed job.id=a attempt=0",
        "dq.run topic=work job.id=a attempt=0",
        "the handler failed, and one attempt is left topic=work job.id=a attempt=1",
        "retried topic=work job.id=a attempt=1",
        "claimed job.id=a attempt=1",
        "dq.run topic=work job.id=a attempt=1",
        "parked topic=work job.id=a attempt=1",
        "carried out a command topic=work job.id=a command=\"requeue\" found=unacked changed=true",
        "claimed job.id=a attempt=1",
        "dq.run topic=work job.id=a attempt=1",
        "acked topic=work job.id=a attempt=1",
        "dq.add topic=work job.id=a",
        "the store changed a job topic=work job.id=a state=delayed version=1 due=",
        "carried out a command topic=work job.id=a command=\"delete\" found=delayed changed=true",
    ];
    let said = about(&traces.lines(), "a");
    assert_eq!(said.len(), life.len(), "{said:#?}");
    for step in life {
        assert!(said.iter().any(|line| line.contains(step)), "{step} in {said:#?}");
    }
}
