//! The spans of a job.

use crate::recorder::subscribe;
use crate::scripted_listener::{HOUR, Script, default_settings, test_job};

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
