//! What a run leaves for callers, and how they wait for it.

use dq::config::TopicOverrides;
use dq::job::{Cause, State, StateError};
use dq::prelude::*;
use dq::provider::{CallError, NoResult};
use dq::testing::Harness;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::scripted_listener::{
    DAY, HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, handler_takes, start, stored_job, test_job,
};

type Waited = Result<u32, CallError>;

/// Waits beside the test, as another task of a program does.
pub(super) fn wait(dq: &Harness, id: &str, within: &str) -> JoinHandle<Waited> {
    tokio::spawn(dq.provider().result::<TestJob, u32>(id).within(within))
}

pub(super) fn why(waited: Waited) -> NoResult {
    match waited {
        Err(CallError::NoResult { why, .. }) => *why,
        other => panic!("{other:?}"),
    }
}

/// Takes ten seconds, and ends by the id of the job.
fn ends_by_id() -> Script {
    Script::new(|job, channel| async move {
        handler_takes(10 * SECOND).await;
        Ok(match job.id.as_str() {
            "acked" => channel.ack(),
            "dead" => channel.dead("it makes no sense"),
            "parked" => channel.park(),
            "deleted" => channel.rejoin_after("1h"),
            "again" if job.state::<u32>()?.is_none() => channel.rejoin_after("1h").with(&1)?,
            _ => channel.ack_with(&7)?,
        })
    })
}

stores!(a_caller_gets_the_result_or_learns_why_there_is_none_before_and_after_the_end: memory, file, redis);
async fn a_caller_gets_the_result_or_learns_why_there_is_none_before_and_after_the_end() {
    let dq = ends_by_id().start(default_settings).await;
    let ids = ["acked", "dead", "parked", "deleted", "again", "result"];
    dq.provider().add_many(ids.map(test_job)).await.unwrap().all().unwrap();
    let waits = ids.map(|id| wait(&dq, id, "30m"));
    let unknown = wait(&dq, "unknown", "30m");
    dq.advance(5 * SECOND).await;
    assert_eq!(why(unknown.await.unwrap()), NoResult::Unknown, "at once");
    dq.provider().delete::<TestJob>("deleted").await.unwrap();
    dq.advance(10 * MINUTE).await;
    let [acked, dead, parked, deleted, again, result] = waits;
    assert_eq!(result.await.unwrap().unwrap(), 7);
    assert_eq!(why(acked.await.unwrap()), NoResult::Acked);
    assert_eq!(why(deleted.await.unwrap()), NoResult::Deleted);
    let is_dead = NoResult::Dead { cause: Some(Cause::Error), error: Some("it makes no sense".into()) };
    assert_eq!(why(dead.await.unwrap()), is_dead);
    assert!(!parked.is_finished() && !again.is_finished(), "they have not ended");
    dq.advance(30 * MINUTE).await;
    for (waited, state) in [(parked, State::Unacked), (again, State::Delayed)] {
        match why(waited.await.unwrap()) {
            NoResult::TimeOver { waited, place } => assert_eq!((waited, place.state()), (30 * MINUTE, state)),
            other => panic!("{other:?}"),
        }
    }
    // They have ended before these calls.
    let after = async |id: &str| dq.provider().result::<TestJob, u32>(id).await;
    assert_eq!(after("result").await.unwrap(), 7);
    dq.provider().ack::<TestJob>("parked").await.unwrap().or_error_if_unchanged().unwrap();
    dq.advance(HOUR / 2).await;
    assert_eq!(after("again").await.unwrap(), 7);
    assert_eq!(why(after("dead").await), is_dead);
    for id in ["acked", "parked", "deleted"] {
        assert_eq!(why(after(id).await), NoResult::Unknown, "{id}: nothing is kept of it");
    }
    let other_type = dq.provider().result::<TestJob, String>("again").await.unwrap_err();
    assert!(other_type.to_string().contains("does not decode into `alloc::string::String`"), "{other_type}");
    assert!(!other_type.may_be_repeated());
}

stores!(a_caller_in_another_process_gets_the_result_soon_although_every_event_is_lost: memory, file, redis);
async fn a_caller_in_another_process_gets_the_result_soon_although_every_event_is_lost() {
    let (dq, faults) = ends_by_id().on_faulty(default_settings).await;
    let other = dq.another(2, |factory| ends_by_id().on(factory, |topic| topic.concurrency(1))).await;
    faults.lose_signals();
    let ids: Vec<_> = (0..200).map(|n| format!("job-{n}")).collect();
    for id in &ids {
        dq.provider().add(test_job(id)).after("1m").await.unwrap();
    }
    dq.provider().add(test_job("dead")).after("1m").await.unwrap();
    let since = Instant::now();
    let waits: Vec<_> = ids.iter().map(|id| wait(&other, id, "1h")).collect();
    let dead = wait(&other, "dead", "1h");
    for waited in waits {
        assert_eq!(waited.await.unwrap().unwrap(), 7);
    }
    assert!(matches!(why(dead.await.unwrap()), NoResult::Dead { .. }));
    // Due after a minute, found by the fallback, and run on 65 permits; then looked at twice a minute.
    assert!(since.elapsed() < 4 * MINUTE, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn each_caller_waits_for_its_own_time_and_one_who_stops_takes_nothing_along() {
    let dq = ends_by_id().start(default_settings).await;
    dq.provider().add(test_job("result")).after("1m").await.unwrap();
    // A caller who stops to wait takes nothing along.
    let dropped = wait(&dq, "result", "1h");
    let waits = [wait(&dq, "result", "1h"), wait(&dq, "result", "30s")];
    dq.advance(SECOND).await;
    dropped.abort();
    dq.advance(2 * MINUTE).await;
    let [long, short] = waits;
    assert_eq!(long.await.unwrap().unwrap(), 7);
    assert!(matches!(why(short.await.unwrap()), NoResult::TimeOver { .. }));
}

stores!(a_result_is_kept_for_the_retention_of_its_job_and_for_an_hour_without_one: memory, file, redis);
async fn a_result_is_kept_for_the_retention_of_its_job_and_for_an_hour_without_one() {
    let dq = Script::new(|job, channel| async move { Ok(channel.ack_with(job.id())?) }).start(default_settings).await;
    dq.provider().add(test_job("plain")).await.unwrap();
    dq.provider().add(test_job("day")).retain("1d").await.unwrap();
    dq.provider().add(test_job("minute")).retain("1m").await.unwrap();
    let read = async |id: &str| dq.provider().result::<TestJob, String>(id).await.ok();
    let kept = async || [read("minute").await, read("plain").await, read("day").await].map(|result| result.is_some());
    dq.advance(SECOND).await;
    assert_eq!(kept().await, [true, true, true]);
    dq.advance(10 * MINUTE).await;
    assert_eq!(kept().await, [false, true, true]);
    dq.advance(HOUR).await;
    assert_eq!(kept().await, [false, false, true]);
    assert_eq!(read("day").await.as_deref(), Some("day"));
    dq.advance(DAY).await;
    assert_eq!(kept().await, [false, false, false]);
}

stores!(a_topic_keeps_no_more_done_jobs_than_it_says: memory, file, redis);
async fn a_topic_keeps_no_more_done_jobs_than_it_says() {
    let settings = |topic: TopicOverrides| topic.done_max(3);
    let dq = Script::new(|_, channel| async move { Ok(channel.ack_with(&1)?) }).start(settings).await;
    for n in 0..10 {
        dq.provider().add(test_job(n)).retain("1d").await.unwrap();
        dq.advance(10 * MS).await;
    }
    dq.advance(5 * MINUTE).await;
    assert_eq!(dq.counts::<TestJob>().await.done, 3);
    for (n, is_kept) in [(6, false), (7, true), (9, true)] {
        assert_eq!(dq.provider().result::<TestJob, u32>(n.to_string()).await.is_ok(), is_kept, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_is_refused_where_it_is_made_and_the_job_goes_on() {
    let script = Script::new(|job, channel| async move {
        let large = "x".repeat(64 << 10);
        if job.attempt() > 0 {
            return Ok(channel.ack_with(&0)?);
        }
        Ok(channel.ack_with(&large).inspect_err(|error| {
            assert_eq!(*error, StateError::TooLarge { size: (64 << 10) + 2, limit: 64 << 10 });
        })?)
    });
    let dq = script.runs(|topic| topic.retry("1m")).await;
    assert!(stored_job(&dq, "a").await.error.contains("only its key in the state or result"));
    dq.advance(2 * MINUTE).await;
    assert_eq!(dq.provider().result::<TestJob, u32>("a").await.unwrap(), 0);
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, DelayJob)]
#[job(topic = "squares")]
struct Square {
    #[job(id)]
    n: u32,
}

/// Each job of a batch has a result of its own, but for those that the end of the batch decides.
#[delay_listener(batch_size = 10, register = false)]
async fn square(batch: Batch<Square>) -> Result<Decided, JobError> {
    for job in batch.iter().filter(|job| job.n < 3) {
        batch.ack_with(job, &(job.n * job.n))?;
    }
    assert!(batch.ack_with(&batch[0], &"x".repeat(64 << 10)).is_err());
    Ok(batch.rest().ack_with(&"the rest")?)
}

#[tokio::test(start_paused = true)]
async fn each_job_of_a_batch_has_a_result_of_its_own() {
    let dq = start(|factory| factory.batch_listener::<square>()).await;
    dq.provider().add_many((0..5).map(|n| Square { n })).await.unwrap().all().unwrap();
    dq.advance(SECOND).await;
    for n in 0..3 {
        assert_eq!(dq.provider().result::<Square, u32>(n).await.unwrap(), n * n);
    }
    for n in 3..5 {
        assert_eq!(dq.provider().result::<Square, String>(n).await.unwrap(), "the rest");
    }
}
