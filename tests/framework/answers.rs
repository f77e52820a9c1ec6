//! Answers that a caller must look at, adds with a time for each job, and payloads of another version.

use std::time::Duration;

use dq::job::{Cause, JobState, State};
use dq::prelude::*;
use dq::provider::{AddedHow, AddedOrKept, CallError, Invalid, Refusal};
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, TestJob, start, test_job};

#[tokio::test(start_paused = true)]
async fn a_kept_job_that_is_dead_is_an_error_of_unless_dead_and_runs_again_by_requeue() {
    let script = Script::fails("no");
    let dq = script.start(|topic| topic.retry("none")).await;
    let jobs = dq.provider();
    let add = || jobs.add(test_job("a")).keep_existing();
    let first: AddedOrKept = add().await.unwrap();
    assert_eq!(first.or_error_if_dead().unwrap().how, AddedHow::New);
    dq.settle().await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "final a 1 error"]);

    let kept = add().await.unwrap();
    assert_eq!(kept.how, AddedHow::Kept(State::Dead), "the add itself succeeds");
    let error = kept.or_error_if_dead().unwrap_err();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::Exists(State::Dead), .. }), "{error:?}");
    assert!(error.to_string().ends_with("`requeue` runs it again"), "{error}");
    dq.settle().await;
    assert!(script.log.take().is_empty(), "nothing runs");

    assert!(jobs.requeue::<TestJob>("a").await.unwrap().or_error_if_unchanged().unwrap().changed);
    dq.settle().await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "final a 1 error"]);
    jobs.add(test_job("b")).after(HOUR).await.unwrap();
    let kept = jobs.add(test_job("b")).keep_existing().await.unwrap();
    assert_eq!(kept.or_error_if_dead().unwrap().how, AddedHow::Kept(State::Delayed), "a job that waits will run");
}

#[tokio::test(start_paused = true)]
async fn an_ack_or_requeue_that_changes_nothing_is_an_error_of_must_change() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic).await;
    let jobs = dq.provider();
    let unknown = jobs.ack::<TestJob>("nobody").await.unwrap();
    assert_eq!((unknown.found, unknown.changed), (None, false), "an unknown id is no error");
    let error = unknown.or_error_if_unchanged().unwrap_err();
    assert!(matches!(error, CallError::Refused { refusal: Refusal::NoSuchJob, .. }), "{error:?}");
    assert!(error.to_string().ends_with("there is no such job"), "{error}");
    jobs.add(test_job("a")).after(HOUR).await.unwrap();
    let error = jobs.requeue::<TestJob>("a").await.unwrap().or_error_if_unchanged().unwrap_err();
    assert!(error.to_string().ends_with("it is delayed, or in another run"), "{error}");
    assert_eq!(jobs.ack::<TestJob>("a").await.unwrap().or_error_if_unchanged().unwrap().found, Some(State::Delayed));
}

#[tokio::test(start_paused = true)]
async fn an_add_many_of_which_a_job_failed_is_an_error_of_all_with_the_first_one_and_how_many() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic).await;
    let jobs = dq.provider();
    let add = |ids: &'static [&str]| jobs.add_many(ids.iter().map(test_job)).after(HOUR);
    let added = add(&["a", "b"]).await.unwrap().all().unwrap();
    assert_eq!(added.iter().map(|added| added.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);

    let error = add(&["c", "b", "d", "a"]).await.unwrap().all().unwrap_err();
    let CallError::SomeFailed { failed: 2, jobs: 4, first } = &error else { panic!("{error:?}") };
    assert!(
        matches!(&**first, CallError::Refused { target, refusal: Refusal::Exists(_) } if target.id.as_ref().unwrap().as_str() == "b"),
        "{error:?}"
    );
    let text = "2 of the 4 jobs of the call failed; the first: job `b` of topic `work` exists and is delayed: ";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!(dq::Error::from(error).to_string().matches("job `b`").count(), 1, "a source is not told twice");
    assert_eq!(dq.counts::<TestJob>().await.delayed, 4, "the others were added");

    let again = add(&["d", "e", "d"]).await.unwrap();
    assert_eq!((again.len(), again[1].is_ok(), again.iter().filter(|result| result.is_err()).count()), (3, true, 2));
    let by_reference = (&again).into_iter().filter(|result| result.is_ok()).count();
    assert_eq!((by_reference, again.into_iter().filter(Result::is_ok).count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_dead_job_that_an_add_many_kept_is_an_error_of_unless_dead() {
    let script = Script::fails("no");
    let dq = script.start(|topic| topic.retry("none")).await;
    let jobs = dq.provider();
    jobs.add(test_job("dead")).await.unwrap();
    dq.settle().await;
    let add = || jobs.add_many(["waits", "dead"].map(test_job)).after(HOUR).keep_existing();
    let first = add().await.unwrap();
    let how: Vec<_> = first.iter().map(|result| result.as_ref().unwrap().how).collect();
    assert_eq!(how, [AddedHow::New, AddedHow::Kept(State::Dead)], "the adds themselves succeed");

    let again = add().await.unwrap().or_error_if_dead();
    assert_eq!(again[0].as_ref().unwrap().how, AddedHow::Kept(State::Delayed), "a job that waits will run");
    let error = again.all().unwrap_err();
    assert!(matches!(&error, CallError::SomeFailed { failed: 1, jobs: 2, .. }), "{error:?}");
    assert!(error.to_string().ends_with("`requeue` runs it again"), "{error}");
    assert_eq!(
        jobs.add_many(["dead"].map(test_job)).after(HOUR).replace_existing().await.unwrap().all().unwrap().len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn each_job_of_an_add_many_has_a_delay_or_a_time_of_its_own() {
    let script = Script::takes(SECOND);
    let dq = script.start(|topic| topic).await;
    let jobs = dq.provider();
    let clock = dq.counts::<TestJob>().await.clock;
    let pairs = [("a", "1m"), ("b", "5x"), ("c", "2h"), ("d", "4000d")];
    let added = jobs.add_many_after(pairs.map(|(id, delay)| (test_job(id), delay))).after("9m").await.unwrap();
    assert!(added[0].is_ok() && added[2].is_ok(), "{added:?}");
    assert!(
        matches!(&added[1], Err(CallError::Invalid(Invalid::BadDuration { field: "after", .. }))),
        "it is an error of its job alone"
    );
    assert!(matches!(&added[3], Err(CallError::Invalid(Invalid::TooLong { .. }))), "{added:?}");
    let times = [(test_job("e"), clock.after(MINUTE)), (test_job("f"), clock.after(HOUR))];
    assert!(jobs.add_many_at(times).await.unwrap().iter().all(Result::is_ok));
    for (id, delay) in [("a", MINUTE), ("c", 2 * HOUR), ("e", MINUTE), ("f", HOUR)] {
        let job = dq.job::<TestJob>(id).await.unwrap();
        assert_eq!(job.place, JobState::Delayed { due: clock.after(delay) }, "{id}");
    }
}

/// A rejoin waits as long as the job did, so the delay is noted in the job.
#[tokio::test(start_paused = true)]
async fn a_job_with_a_delay_of_its_own_rejoins_after_that() {
    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "again", delay = "1h")]
    struct Again {
        #[job(id)]
        id: String,
    }
    #[delay_listener(register = false)]
    async fn again(_job: Job<Again>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.rejoin())
    }
    let dq = start(|factory| factory.listener::<again>()).await;
    let clock = dq.counts::<Again>().await.clock;
    let job = |id: &str| Again { id: id.to_owned() };
    let pairs = [(job("a"), Duration::from_secs(60)), (job("b"), Duration::from_secs(120))];
    assert!(dq.provider().add_many_after(pairs).await.unwrap().iter().all(Result::is_ok));
    dq.advance(130 * SECOND).await;
    for (id, due) in [("a", 180), ("b", 240)] {
        let job = dq.job::<Again>(id).await.unwrap();
        assert_eq!(job.place, JobState::Delayed { due: clock.after(due * SECOND) }, "{id}");
    }
}

/// What docs/guide/retries.md says about a deploy that changes the payload.
#[tokio::test(start_paused = true)]
async fn a_job_that_the_new_version_cannot_read_is_dead_with_its_payload_and_runs_once_a_version_can() {
    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "mail")]
    struct NewMail {
        to: String,
    }
    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "mail")]
    struct FixedMail {
        #[serde(alias = "address")]
        to: String,
    }
    #[delay_listener(register = false)]
    async fn new_mail(_job: Job<NewMail>) -> Result<(), JobError> {
        Ok(())
    }
    #[delay_listener(register = false)]
    async fn fixed_mail(
        job: Job<FixedMail>,
        sent: &tokio::sync::mpsc::UnboundedSender<String>,
    ) -> Result<(), JobError> {
        sent.send(job.to.clone())?;
        Ok(())
    }
    let dq = start(|factory| factory.listener::<new_mail>()).await;
    let topic = dq.provider().topic("mail").unwrap();
    topic.add_json(r#"{"address":"ada"}"#).id("old").await.unwrap();
    dq.settle().await;
    let dead = topic.get("old").await.unwrap().unwrap();
    assert_eq!(dead.state(), State::Dead);
    assert_eq!(dead.details.as_ref().unwrap().cause, Some(Cause::Decode));
    assert_eq!(dead.payload().unwrap()["address"], "ada", "nothing is lost");
    let store = dq.store();
    dq.shutdown(SECOND).await;

    let (sent, mut mails) = tokio::sync::mpsc::unbounded_channel::<String>();
    let with = |factory: ContextFactory| factory.listener::<fixed_mail>().provide(sent);
    let dq = dq::testing::Harness::start_on(store, 2, with).await;
    let mut dead = dq.provider().dead::<FixedMail>();
    while let Some(page) = dead.requeue_next().await.unwrap() {
        assert_eq!(page.changed, 1);
    }
    dq.settle().await;
    assert_eq!(mails.recv().await.unwrap(), "ada");
}
