//! An id that stays taken for a time after its add: `unique_for`.

use dq::job::State;
use dq::prelude::*;
use dq::provider::{AddedHow, CallError, Invalid, JobOptions, Refusal};
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{DAY, HOUR, SECOND, Script, test_job};

/// A job of the topic of [`TestJob`](crate::scripted_listener::TestJob).
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "work", unique_for = "24h")]
struct Once {
    #[job(id)]
    id: String,
}

fn once(id: impl ToString) -> Once {
    Once { id: id.to_string() }
}

stores!(a_repeated_add_runs_once_within_its_time_and_again_after_it: memory, file, redis);
/// The add of an id is repeated one second, one hour and 23 hours after its job has ended, and after a day.
async fn a_repeated_add_runs_once_within_its_time_and_again_after_it() {
    let script = Script::acks();
    let dq = script.start(|topic| topic).await;
    let jobs = dq.provider();
    let untyped = jobs.topic("work").unwrap();
    jobs.add(once("typed")).await.unwrap();
    untyped.add_json(r#"{"id":"untyped"}"#).id("untyped").unique_for(DAY).await.unwrap();
    jobs.add_many([once("many-1"), once("many-2")]).await.unwrap().all().unwrap();
    dq.settle().await;
    assert_eq!(script.log.take().len(), 4);
    for wait in [SECOND, HOUR - SECOND, 22 * HOUR] {
        dq.advance(wait).await;
        let again = jobs.add(once("typed")).keep_existing().await.unwrap();
        assert_eq!(again.or_error_if_dead().unwrap().how, AddedHow::Kept(State::Done));
        let refused = jobs.add(test_job("untyped")).await.unwrap_err();
        assert!(matches!(refused, CallError::Refused { refusal: Refusal::Exists(State::Done), .. }), "{refused}");
        let many = jobs.add_many([once("many-1"), once("many-2")]).keep_existing().await.unwrap();
        let kept = many.or_error_if_dead().all().unwrap();
        assert!(kept.iter().all(|added| added.how == AddedHow::Kept(State::Done)), "{kept:?}");
        dq.settle().await;
    }
    assert_eq!(script.log.take(), [""; 0]);
    dq.advance(HOUR).await;
    jobs.add(once("typed")).await.unwrap();
    untyped.add_json(r#"{"id":"untyped"}"#).id("untyped").await.unwrap();
    jobs.add_many([once("many-1"), once("many-2")]).await.unwrap().all().unwrap();
    dq.settle().await;
    assert_eq!(script.log.take().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_job_leaves_its_id_taken_and_a_replacement_takes_it() {
    let script = Script::acks();
    let dq = script.start(|topic| topic).await;
    let jobs = dq.provider();
    jobs.add(once("a")).after("1h").await.unwrap();
    jobs.delete::<Once>("a").await.unwrap();
    assert_eq!(
        jobs.add(once("a")).keep_existing().await.unwrap().or_error_if_dead().unwrap().how,
        AddedHow::KeptDeleted
    );
    let refused = jobs.add(once("a")).await.unwrap_err();
    assert!(matches!(refused, CallError::Refused { refusal: Refusal::Deleted, .. }) && !refused.may_be_repeated());
    assert_eq!(
        refused.to_string(),
        "job `a` of topic `work` was deleted, and its id stays taken: `.keep_existing()` accepts that, `.replace_existing()` runs it again"
    );
    assert_eq!(jobs.add(once("a")).replace_existing().await.unwrap().how, AddedHow::New);
    dq.settle().await;
    assert_eq!(script.log.take().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_taken_for_a_second_to_thirty_days_and_a_generated_one_never() {
    let dq = Script::acks().start(|topic| topic).await;
    let topic = dq.provider().topic("work").unwrap();
    for (time, is_allowed) in [("999ms", false), ("1s", true), ("30d", true), ("31d", false)] {
        let added = topic.add_json("{}").id(time).unique_for(time).await;
        let is_refused = matches!(added, Err(CallError::Invalid(Invalid::OutOfRange { field: "unique_for", .. })));
        assert_eq!((added.is_ok(), is_refused), (is_allowed, !is_allowed), "{time}: {added:?}");
    }
    let bare = topic.add_json("{}").unique_for("1h").await;
    assert!(matches!(bare, Err(CallError::Invalid(Invalid::NoId { .. }))), "{bare:?}");
}

#[tokio::test(start_paused = true)]
async fn a_command_may_name_the_version_of_its_job() {
    let dq = Script::acks().start(|topic| topic).await;
    let jobs = dq.provider();
    jobs.add(once("a")).after("1h").await.unwrap();
    let changed = jobs.extend_by::<Once>("a", "1h").await.unwrap();
    let other = jobs.delete::<Once>("a").if_version(0).await.unwrap_err();
    assert!(matches!(other, CallError::Refused { refusal: Refusal::OtherVersion(1), .. }), "{other:?}");
    assert_eq!(other.to_string(), "nothing was done to job `a` of topic `work`: its version is 1");
    for refused in [
        jobs.cancel::<Once>("a").if_version(7).await.map(drop),
        jobs.ack::<Once>("a").if_version(7).await.map(drop),
        jobs.requeue::<Once>("a").if_version(7).await.map(drop),
    ] {
        assert!(matches!(refused, Err(CallError::Refused { refusal: Refusal::OtherVersion(1), .. })), "{refused:?}");
    }
    assert!(jobs.delete::<Once>("a").if_version(changed.version).await.unwrap().changed);
    assert_eq!(jobs.delete::<Once>("a").if_version(1).await.unwrap().found, None);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_job_gets_another_retry_policy_other_headers_and_another_retention() {
    let script = Script::fails("no");
    let dq = script.start(|topic| topic).await;
    let jobs = dq.provider();
    jobs.add(once("a")).after("1h").header("old", "1").await.unwrap();
    let options = JobOptions::new().retry("10s x 2").headers([("new", "2")]).retain("1d");
    assert_eq!(jobs.set_options::<Once>("a", options).await.unwrap().version, 1);
    let details = dq.job::<Once>("a").await.unwrap().details.unwrap();
    assert_eq!((details.headers, details.retain), (vec![("new".to_owned(), "2".to_owned())], DAY));
    dq.advance(HOUR + 25 * SECOND).await;
    assert_eq!(script.log.take().len(), 4, "three runs, and the `on_exhausted`");
    let bad = jobs.set_options::<Once>("a", JobOptions::new().retry("often")).await;
    assert!(matches!(bad, Err(CallError::Invalid(Invalid::BadRetry(_)))), "{bad:?}");
    let long = "x".repeat(9_000);
    let bad = jobs.set_options::<Once>("a", JobOptions::new().headers([("h", long)])).await;
    assert!(matches!(bad, Err(CallError::Invalid(Invalid::OverLimit(_)))), "{bad:?}");
}
