//! What is asked for while a job runs takes effect in the step in which its run ends.

use std::sync::Arc;

use dq::config::TopicOverrides;
use dq::job::State;
use dq::prelude::*;
use dq::provider::Addition;
use dq::testing::Harness;

use crate::idle::watched_store;
use crate::worker::{HOUR, MINUTE, SECOND, Script, Work, handler_takes, kept, usual, work};

/// Works for ten seconds, then does this.
fn then(decide: impl Fn(&Job<Work>, Channel) -> Result<Decided, JobError> + Send + Sync + 'static) -> Script {
    let decide = Arc::new(decide);
    Script::new(move |job, channel| {
        let decide = decide.clone();
        async move {
            handler_takes(10 * SECOND).await;
            decide(&job, channel)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_delete_lets_the_run_finish_and_no_retry_follows() {
    let script = then(|_, _| Err("no".into()));
    let dq = script.start(|topic| topic.retry("1m, 1m")).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    let found = dq.provider().delete::<Work>("a").await.unwrap();
    assert_eq!((found.found, found.changed, found.removed), (Some(State::Running), true, None));
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0"]);
    assert!(dq.job::<Work>("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_delete_outweighs_a_rejoin_a_park_and_the_last_failure() {
    type Decide = fn(&Job<Work>, Channel) -> Result<Decided, JobError>;
    let decides: [Decide; 4] = [
        |_, channel| Ok(channel.rejoin_after("1m")),
        |_, channel| Ok(channel.park()),
        |_, _| Err("no".into()),
        |_, _| panic!("no"),
    ];
    for decide in decides {
        let script = then(decide);
        let dq = script.start(|topic| topic.retry("none")).await;
        dq.provider().add(work("a")).await.unwrap();
        dq.advance(SECOND).await;
        dq.provider().delete::<Work>("a").await.unwrap();
        dq.advance(HOUR).await;
        assert_eq!(script.log.take_whats(), ["due a 0"], "neither again nor `final_retry`");
        assert!(dq.job::<Work>("a").await.is_none());
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
    let dq = script.start(|topic| topic.retry("1m")).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(5 * SECOND).await;
    dq.provider().cancel::<Work>("a").await.unwrap();
    dq.settle().await;
    assert_eq!(kept(&dq, "a").await.state, State::Running, "it tidies up");
    dq.advance(HOUR).await;
    assert_eq!(log.take(), ["0ns due a 0"]);
    assert!(dq.job::<Work>("a").await.is_none());
    assert_eq!(dq.health().topics[0].counters.timed_out, 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_node_that_runs_the_job() {
    let script = Script::new(|job, channel| async move {
        job.cancelled().await;
        Ok(channel.ack())
    });
    let first = script.start(usual).await;
    let second = first.another(2, |factory| factory.without_listeners()).await;
    first.provider().add(work("a")).await.unwrap();
    first.advance(SECOND).await;
    second.provider().cancel::<Work>("a").await.unwrap();
    first.settle().await;
    assert!(second.job::<Work>("a").await.is_none());
}

/// A node with a handler that takes an hour, and a job in hand that waits for it to end: it has to run alone.
async fn one_waits_in_hand() -> (Harness, Script) {
    let stuck = Script::hangs();
    let dead = stuck.start(|topic| topic.timeout("0s").max_crashes(2)).await;
    dead.provider().add(work("waits")).await.unwrap();
    dead.settle().await;
    let script = Script::takes(HOUR);
    let dq = script.beside(&dead, 2, |topic| topic.timeout("0s").max_crashes(2)).await;
    dead.kill();
    dq.advance(20 * SECOND).await;
    dq.provider().add(work("long")).await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take_whats(), ["due long 0"]);
    assert_eq!(dq.health().topics[0].waiting, 1);
    (dq, script)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_that_has_not_started_never_starts() {
    let (dq, script) = one_waits_in_hand().await;
    let found = dq.provider().cancel::<Work>("waits").await.unwrap();
    assert_eq!((found.found, found.changed), (Some(State::Running), true));
    dq.settle().await;
    assert!(dq.job::<Work>("waits").await.is_none(), "it was given back, and the mark took effect");
    dq.advance(2 * HOUR).await;
    assert!(script.log.take().is_empty());
}

/// One crash short of its cap a job starts only after the store was asked, which also hears of what no signal told.
#[tokio::test(start_paused = true)]
async fn a_deleted_quarantined_job_that_has_not_started_never_starts() {
    let (store, faults) = watched_store();
    let script = Script::takes(HOUR);
    let quarantined = |topic: TopicOverrides| topic.timeout("0s").max_crashes(1);
    let dq = Harness::start_on(store, 1, |factory| script.on(factory, quarantined)).await;
    dq.provider().add_many(["long", "waits"].map(work)).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!(script.log.take_whats(), ["due long 0"]);
    assert_eq!(dq.health().topics[0].waiting, 1);
    faults.lose_signals();
    let found = dq.provider().delete::<Work>("waits").await.unwrap();
    assert_eq!((found.found, found.changed), (Some(State::Running), true));
    dq.advance(2 * HOUR).await;
    assert!(script.log.take().is_empty());
    assert!(dq.job::<Work>("waits").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_replacement_of_a_running_job_comes_when_the_run_ends_and_is_due_as_counted_from_its_add() {
    let script = then(|_, channel| Ok(channel.ack()));
    let dq = script.start(usual).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    let added = dq.provider().add(work("a")).after(MINUTE).replace_existing().await.unwrap();
    assert_eq!(added.how, Addition::ReplacementWaits);
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "61s due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_comes_also_when_the_run_fails_and_starts_afresh() {
    let script = then(|_, _| Err("no".into()));
    let dq = script.start(|topic| topic.retry("1h")).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    dq.provider().add(work("a")).retry("none").replace_existing().await.unwrap();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "10s due a 0", "20s final a 1 error"]);
}

#[tokio::test(start_paused = true)]
async fn an_ack_from_outside_ends_a_running_job_though_its_handler_fails() {
    let script = then(|_, _| Err("too late".into()));
    let dq = script.start(usual).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    assert!(dq.provider().ack::<Work>("a").await.unwrap().changed);
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0"]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_runs_is_known_until_it_is_deleted() {
    let script = then(|_, channel| Ok(channel.ack()));
    let dq = script.start(usual).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    let refused = dq.provider().add(work("a")).await.unwrap_err().to_string();
    assert!(refused.starts_with("job `a` of topic `work` exists and is running"), "{refused}");
    let kept = dq.provider().add(work("a")).keep_existing().await.unwrap();
    assert_eq!(kept.how, Addition::Kept(State::Running));
    dq.provider().delete::<Work>("a").await.unwrap();
    let again = dq.provider().add(work("a")).after(MINUTE).await.unwrap();
    assert_eq!(again.how, Addition::ReplacementWaits, "under a delete the id is free");
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0", "61s due a 0"]);
}
