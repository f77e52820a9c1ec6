//! Shutting a node down.

use std::time::Duration;

use dq::job::{JobState, State};
use dq::testing::Harness;
use dq_tests::{Fault, FaultyStore};
use tokio::time::Instant;

use crate::scripted_listener::{
    HOUR, Log, MINUTE, MS, RecordDrop, SECOND, Script, TestJob, default_settings, handler_takes, start, stored_job,
    test_job,
};

/// Starts a node without listeners, which observes what the stopping node leaves behind.
async fn observer(dq: &Harness) -> Harness {
    dq.another(9, |factory| factory.without_listeners()).await
}

#[tokio::test(start_paused = true)]
async fn handlers_finish_within_the_grace() {
    let script = Script::takes(10 * SECOND);
    let dq = script.start(default_settings).await;
    let observer = observer(&dq).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    let start = Instant::now();
    let stopped = dq.shutdown(MINUTE).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    assert_eq!(start.elapsed(), 9 * SECOND, "the shutdown waits no longer than needed");
    assert!(observer.job::<TestJob>("a").await.is_none(), "its ack was sent");
}

stores!(a_handler_that_does_not_finish_is_cancelled_and_its_job_goes_back_as_it_was: memory, file, redis);
async fn a_handler_that_does_not_finish_is_cancelled_and_its_job_goes_back_as_it_was() {
    let log = Log::new();
    let drops = log.clone();
    let script = Script::new(move |job, _| {
        let log = drops.clone();
        async move {
            let _record = RecordDrop(log.clone());
            let cancelled = job.cancelled();
            let cancels = log.clone();
            tokio::spawn(async move {
                cancelled.await;
                cancels.record("token");
            });
            std::future::pending().await
        }
    });
    let dq = script.start(|topic| topic.timeout("0s")).await;
    let observer = observer(&dq).await;
    let clock = observer.counts::<TestJob>().await.clock;
    dq.provider().add(test_job("a")).after(SECOND).await.unwrap();
    dq.advance(5 * SECOND).await;
    let stopped = dq.shutdown(10 * SECOND).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    observer.settle().await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["15s dropped", "15s token"]);
    let seen = observer.job::<TestJob>("a").await.unwrap();
    assert_eq!(seen.place, JobState::Delayed { due: clock.after(SECOND) }, "due unchanged");
    assert_eq!(seen.details.unwrap().attempts, 0, "no attempt is spent");
}

stores!(jobs_that_have_not_started_go_back_at_once_and_run_on_another_node: memory, file, redis);
async fn jobs_that_have_not_started_go_back_at_once_and_run_on_another_node() {
    let script = Script::takes(10 * MS);
    let dq = script.start(|topic| topic.concurrency(4)).await;
    dq.provider().add_many((0..200).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(305 * MS).await; // at full load: claimed jobs wait for permits
    assert!(dq.health().topics[0].waiting > 0);
    let observer = observer(&dq).await;
    let ran = script.log.take().len();
    let stopped = dq.shutdown(MINUTE).await;
    assert_eq!(stopped.left, 0);
    assert!(script.log.take().is_empty(), "nothing starts any more");
    let counts = observer.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running), (200 - ran, 0));
    let mut waiting = observer.provider().waiting::<TestJob>().per_page(1_000);
    for seen in waiting.next_page().await.unwrap().unwrap() {
        assert_eq!(seen.details.unwrap().attempts, 0);
    }
    let successor = script.beside(&observer, 3, default_settings).await;
    successor.advance(SECOND).await;
    assert_eq!(script.log.take().len(), 200 - ran);
}

stores!(another_node_runs_at_once_what_a_stopping_node_gives_back: memory, file, redis);
async fn another_node_runs_at_once_what_a_stopping_node_gives_back() {
    let (stuck, script) = (Script::hangs(), Script::acks());
    let dq = stuck.runs(|topic| topic.timeout("0s")).await;
    let other = script.beside(&dq, 2, default_settings).await;
    dq.shutdown(Duration::ZERO).await;
    other.settle().await;
    assert_eq!(script.log.take_without_times(), ["due a 0"], "no lease has to expire");
    assert_eq!(other.health().topics[0].counters.reclaimed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_stop_request_ends_the_grace() {
    let script = Script::hangs();
    let dq = script.start(|topic| topic.timeout("0s")).await;
    let observer = observer(&dq).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let start = Instant::now();
    let stop = tokio::spawn(dq.shutdown(HOUR));
    handler_takes(SECOND).await;
    assert_eq!(stored_job(&observer, "a").await.state, State::Running);
    stop.abort(); // drops the context, which ends the grace
    observer.settle().await;
    assert_eq!((stored_job(&observer, "a").await.state, start.elapsed()), (State::Delayed, SECOND));
}

stores!(a_dropped_node_gives_its_jobs_back: memory, file, redis);
async fn a_dropped_node_gives_its_jobs_back() {
    let script = Script::hangs();
    let dq = script.start(default_settings).await;
    let observer = observer(&dq).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    drop(dq);
    observer.settle().await;
    assert_eq!(stored_job(&observer, "a").await.state, State::Delayed);
}

stores!(without_rollback_on_shutdown_other_nodes_reclaim_the_jobs_and_count_no_crash: memory, file, redis);
async fn without_rollback_on_shutdown_other_nodes_reclaim_the_jobs_and_count_no_crash() {
    let stuck = Script::hangs();
    let dq = start(|factory| stuck.on(factory, |topic| topic.timeout("0s")).rollback_on_shutdown(false)).await;
    let observer = observer(&dq).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let stopped = dq.shutdown(SECOND).await;
    assert_eq!(stopped.left, 1);
    assert_eq!(stored_job(&observer, "a").await.state, State::Running, "the node did not give it back");
    let script = Script::fails("no");
    let successor = script.beside(&observer, 3, |topic| topic.max_crashes(1).retry("1h")).await;
    successor.advance(MINUTE).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"], "one crash would have ended the job");
    assert_eq!(successor.health().topics[0].counters.reclaimed, 1);
}

stores!(the_last_outcomes_are_sent_before_the_end: memory, file, redis);
async fn the_last_outcomes_are_sent_before_the_end() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    let observer = observer(&dq).await;
    let provider = dq.provider().clone();
    let jobs = provider.add_many((0..1_000).map(test_job));
    let (added, stopped) = tokio::join!(jobs, dq.shutdown(MINUTE));
    let taken = added.map_or(0, |jobs| jobs.into_iter().filter(Result::is_ok).count());
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    let (counts, ran) = (observer.counts::<TestJob>().await, script.log.take().len());
    assert_eq!((counts.running, counts.delayed + ran), (0, taken), "each ran and is gone, or waits");
}

stores!(an_on_exhausted_during_shutdown_finishes_or_runs_again_elsewhere: memory, file, redis);
async fn an_on_exhausted_during_shutdown_finishes_or_runs_again_elsewhere() {
    for (grace, expected) in [(MINUTE, State::Dead), (SECOND, State::Delayed)] {
        let script = Script::fails("no").on_exhausted(|_, _| handler_takes(20 * SECOND));
        let dq = script.start(|topic| topic.retry("none")).await;
        let observer = observer(&dq).await;
        dq.provider().add(test_job("a")).await.unwrap();
        dq.settle().await;
        dq.shutdown(grace).await;
        assert_eq!(stored_job(&observer, "a").await.state, expected);
        script.log.take();
        let successor = script.beside(&observer, 3, default_settings).await;
        successor.advance(HOUR).await;
        let again = script.log.take_without_times();
        assert_eq!(again, if expected == State::Dead { vec![] } else { vec!["final a 1 error"] });
    }
}

stores!(jobs_in_a_lost_transfer_answer_go_back_when_the_node_stops: memory, file, redis);
async fn jobs_in_a_lost_transfer_answer_go_back_when_the_node_stops() {
    let observer = start(|factory| factory.without_listeners()).await;
    let (store, faults) = FaultyStore::over(observer.store());
    let dq = Harness::start_on(store, 2, |factory| Script::acks().on(factory, default_settings)).await;
    faults.fail_next("transfer", Fault::AnswerLost);
    dq.provider().add(test_job("a")).await.unwrap();
    observer.settle().await;
    assert_eq!(stored_job(&observer, "a").await.state, State::Running, "claimed without the node's knowledge");
    assert_eq!(dq.shutdown(SECOND).await.left, 0);
    assert_eq!(stored_job(&observer, "a").await.state, State::Delayed);
}
