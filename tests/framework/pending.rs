//! Pending commands: what is requested while a job runs takes effect in the step in which its run ends.

use std::sync::Arc;

use dq::config::TopicOverrides;
use dq::job::State;
use dq::prelude::*;
use dq::testing::Harness;

use dq_tests::Faults;

use crate::scripted_listener::{
    HOUR, MINUTE, SECOND, Script, TestJob, default_settings, faulty_store, handler_takes, stored_job, test_job,
};

/// A script that takes ten seconds and then decides.
fn then(decide: impl Fn(&Job<TestJob>, Channel) -> Result<Decided, JobError> + Send + Sync + 'static) -> Script {
    let decide = Arc::new(decide);
    Script::new(move |job, channel| {
        let decide = decide.clone();
        async move {
            handler_takes(10 * SECOND).await;
            decide(&job, channel)
        }
    })
}

stores!(a_delete_overrides_a_retry_a_rejoin_a_park_and_the_last_failure: memory, file, redis);
async fn a_delete_overrides_a_retry_a_rejoin_a_park_and_the_last_failure() {
    type Decide = fn(&Job<TestJob>, Channel) -> Result<Decided, JobError>;
    let decides: [(&str, Decide); 5] = [
        ("none", |_, channel| Ok(channel.rejoin_after("1m"))),
        ("none", |_, channel| Ok(channel.park())),
        ("none", |_, _| Err("no".into())),
        ("none", |_, _| panic!("no")),
        ("1m, 1m", |_, _| Err("no".into())),
    ];
    for (retry, decide) in decides {
        let script = then(decide);
        let dq = script.lives(|topic| topic.retry(retry), SECOND).await;
        let found = dq.provider().delete::<TestJob>("a").await.unwrap();
        assert_eq!((found.found, found.changed, found.removed), (Some(State::Running), true, None));
        dq.advance(HOUR).await;
        assert_eq!(script.log.take_without_times(), ["due a 0"], "neither another run nor `on_exhausted`");
        assert!(dq.job::<TestJob>("a").await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_fires_the_token_and_leaves_the_rest_to_the_handler() {
    let script = Script::new(|job, _| async move {
        job.cancelled().await;
        handler_takes(SECOND).await; // it tidies up
        Err("cancelled".into())
    });
    let log = script.log.clone();
    let dq = script.lives(|topic| topic.retry("1m"), 5 * SECOND).await;
    dq.provider().cancel::<TestJob>("a").await.unwrap();
    dq.settle().await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Running, "it tidies up");
    dq.advance(HOUR).await;
    assert_eq!(log.take(), ["0ns due a 0"]);
    assert!(dq.job::<TestJob>("a").await.is_none());
    assert_eq!(dq.health().topics[0].counters.timed_out, 0);
}

stores!(a_cancel_reaches_the_node_that_runs_the_job: memory, file, redis);
async fn a_cancel_reaches_the_node_that_runs_the_job() {
    let script = Script::new(|job, channel| async move {
        job.cancelled().await;
        Ok(channel.ack())
    });
    let first = script.start(default_settings).await;
    let second = first.another(2, |factory| factory.without_listeners()).await;
    first.provider().add(test_job("a")).await.unwrap();
    first.advance(SECOND).await;
    second.provider().cancel::<TestJob>("a").await.unwrap();
    first.settle().await;
    assert!(second.job::<TestJob>("a").await.is_none());
}

/// Returns a node on whose only permit for quarantined jobs one runs for an hour, and which holds another one that waits.
async fn node_with_a_waiting_job() -> (Harness, Script, Arc<Faults>) {
    let stuck = Script::hangs();
    let (store, faults) = faulty_store();
    let cap = |topic: TopicOverrides| topic.timeout("0s").max_crashes(2);
    let dead = Harness::start_on(faults.inner(), 1, |factory| stuck.on(factory, cap)).await;
    dead.provider().add_many(["long", "waits"].map(test_job)).await.unwrap().all().unwrap();
    dead.settle().await;
    let script = Script::takes(HOUR);
    let dq = Harness::start_on(store, 2, |factory| script.on(factory, |topic| cap(topic).concurrency(3))).await;
    dead.kill();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due long 0"]);
    assert_eq!(dq.health().topics[0].waiting, 1);
    (dq, script, faults)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_that_has_not_started_never_starts() {
    let (dq, script, _) = node_with_a_waiting_job().await;
    let found = dq.provider().cancel::<TestJob>("waits").await.unwrap();
    assert_eq!((found.found, found.changed), (Some(State::Running), true));
    dq.settle().await;
    assert!(dq.job::<TestJob>("waits").await.is_none(), "the node rolled it back, and the pending command took effect");
    dq.advance(2 * HOUR).await;
    assert!(script.log.take().is_empty());
}

stores!(a_deleted_quarantined_job_that_has_not_started_never_starts: memory, file, redis);
/// A quarantined job starts only after an `isolate`, whose answer reports the pending command although its signal was lost.
async fn a_deleted_quarantined_job_that_has_not_started_never_starts() {
    let (dq, script, faults) = node_with_a_waiting_job().await;
    faults.lose_signals();
    let found = dq.provider().delete::<TestJob>("waits").await.unwrap();
    assert_eq!((found.found, found.changed), (Some(State::Running), true));
    dq.advance(2 * HOUR).await;
    assert!(script.log.take().is_empty());
    assert!(dq.job::<TestJob>("waits").await.is_none());
}
