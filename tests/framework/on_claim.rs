//! `ack = "on_claim"`: at most once.

use std::sync::Arc;
use std::thread;

use dq::config::TopicOverrides;
use dq::environment::{Environment, Seeded, SpawnOn, TokioClock};
use dq::listener::{AckMode, CheckpointError, FollowUpError};
use dq::provider::NoResult;
use tokio::runtime::{Builder, Handle};

use crate::results::{wait, why};
use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, TestJob, start, test_job};

fn on_claim(topic: TopicOverrides) -> TopicOverrides {
    topic.ack(AckMode::OnClaim)
}

#[tokio::test(start_paused = true)]
async fn the_job_is_gone_before_its_handler_starts() {
    let script = Script::takes(10 * SECOND);
    let dq = script.runs(on_claim).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    assert!(dq.job::<TestJob>("a").await.is_none());
    assert_eq!(dq.health().topics[0].running, 1);
    dq.advance(HOUR).await;
    assert_eq!(dq.health().topics[0].running, 0);
}

#[tokio::test(start_paused = true)]
async fn failures_panics_and_timeouts_are_not_retried_and_the_topic_keeps_working() {
    let script = Script::new(|job, channel| async move {
        match job.id().as_str() {
            "fails" => Err("no".into()),
            "panics" => panic!("no"),
            "hangs" => std::future::pending().await,
            "rejoins" => Ok(channel.rejoin()),
            _ => Ok(channel.ack()),
        }
    });
    let dq = script.start(|topic| on_claim(topic).concurrency(1).timeout("5s")).await;
    for id in ["fails", "panics", "hangs", "rejoins", "works"] {
        dq.provider().add(test_job(id)).await.unwrap();
        dq.advance(MINUTE).await;
    }
    dq.advance(HOUR).await;
    assert_eq!(
        script.log.take_without_times(),
        ["due fails 0", "due panics 0", "due hangs 0", "due rejoins 0", "due works 0"]
    );
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running, counts.dead), (0, 0, 0));
    assert_eq!(dq.health().topics[0].counters.failed, 3);
}

stores!(a_dying_node_loses_the_jobs_it_acked_on_claim_and_no_others: memory, file, redis);
async fn a_dying_node_loses_the_jobs_it_acked_on_claim_and_no_others() {
    let script = Script::hangs();
    let dq = script.start(|topic| on_claim(topic).concurrency(2)).await;
    let other_script = Script::acks();
    for id in ["a", "b", "c"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.settle().await;
    let other = other_script.beside(&dq, 2, on_claim).await;
    dq.kill();
    other.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "due b 0"]);
    assert_eq!(other_script.log.take_without_times(), ["due c 0"]);
}

#[tokio::test(start_paused = true)]
async fn ack_on_claim_runs_no_more_handlers_than_permits() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| on_claim(topic).concurrency(3)).await;
    for id in 0..9 {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    for second in 1..=3 {
        dq.settle().await;
        assert_eq!(script.log.take().len(), 3, "in second {second}");
        dq.advance(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_handlers_have_no_runtime_any_more_takes_no_jobs() {
    let gone = thread::spawn(|| Builder::new_current_thread().build().unwrap().handle().clone()).join().unwrap();
    let spawn = Arc::new(SpawnOn::new(Handle::current(), gone));
    let environment = Environment::new(Arc::new(TokioClock::new()), Arc::new(Seeded::new(1)), spawn);
    let script = Script::acks();
    let settings = |topic| on_claim(topic).concurrency(1);
    let dq = start(|factory| script.on(factory, settings).environment(environment)).await;
    dq.provider().add_many((0..10).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(MINUTE).await;
    assert!(script.log.take().is_empty());
    assert_eq!(dq.counts::<TestJob>().await.delayed, 9, "the node learned it from one job");
    assert!(!dq.health().ready);
    dq.shutdown(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_acked_on_claim_has_no_checkpoints_follow_ups_or_result() {
    let script = Script::new(|_, channel| async move {
        assert_eq!(channel.checkpoint(&1).await, Err(CheckpointError::Lost));
        let decided = channel.ack_with(&7)?;
        let says = decided.clone().then(|next| _ = next.add(test_job("next")).after("1h"));
        assert_eq!(says.unwrap_err(), FollowUpError::Acked);
        Ok(decided)
    });
    let dq = script.start(on_claim).await;
    dq.provider().add(test_job("a")).after("1m").await.unwrap();
    let result = wait(&dq, "a", "1h");
    dq.advance(5 * MINUTE).await;
    assert_eq!(why(result.await.unwrap()), NoResult::Acked);
    assert_eq!(script.log.take(), ["60s due a 0"]);
    assert_eq!((dq.health().topics[0].counters.failed, dq.counts::<TestJob>().await.delayed), (0, 0));
}
