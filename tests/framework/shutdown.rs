//! A node that stops.

use std::time::Duration;

use dq::job::State;
use dq::store::JobPlace;
use dq::testing::Harness;
use dq_tests::{Fault, FaultyStore};
use tokio::time::Instant;

use crate::worker::{HOUR, Log, MINUTE, SECOND, Script, Work, handler_takes, kept, start, usual, work};

/// What is left when a node stops: looked at by another that only looks.
async fn observer(dq: &Harness) -> Harness {
    dq.another(9, |factory| factory.without_listeners()).await
}

#[tokio::test(start_paused = true)]
async fn handlers_finish_within_the_grace() {
    let script = Script::takes(10 * SECOND);
    let dq = script.start(usual).await;
    let look = observer(&dq).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.advance(SECOND).await;
    let start = Instant::now();
    let stopped = dq.shutdown(MINUTE).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    assert_eq!(start.elapsed(), 9 * SECOND, "it waits as long as is needed");
    assert!(look.job::<Work>("a").await.is_none(), "its ack was sent");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_finish_is_cancelled_and_its_job_goes_back_as_it_was() {
    struct TellDrop(Log);
    impl Drop for TellDrop {
        fn drop(&mut self) {
            self.0.say("dropped");
        }
    }
    let log = Log::new();
    let told = log.clone();
    let script = Script::new(move |job, _| {
        let log = told.clone();
        async move {
            let _tell = TellDrop(log.clone());
            let cancelled = job.cancelled();
            let told = log.clone();
            tokio::spawn(async move {
                cancelled.await;
                told.say("token");
            });
            std::future::pending().await
        }
    });
    let dq = script.start(|topic| topic.timeout("0s")).await;
    let look = observer(&dq).await;
    let clock = look.counts::<Work>().await.clock;
    dq.provider().add(work("a")).after(SECOND).await.unwrap();
    dq.advance(5 * SECOND).await;
    let stopped = dq.shutdown(10 * SECOND).await;
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    look.settle().await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["15s dropped", "15s token"]);
    let seen = look.job::<Work>("a").await.unwrap();
    assert_eq!(seen.place, JobPlace::Delayed { due: clock.after(SECOND) }, "due unchanged");
    assert_eq!(seen.details.unwrap().attempts, 0, "no attempt is spent");
}

#[tokio::test(start_paused = true)]
async fn what_has_not_started_goes_back_at_once_and_another_node_runs_it() {
    let script = Script::takes(10 * crate::worker::MS);
    let dq = script.start(|topic| topic.concurrency(4)).await;
    dq.provider().add_many((0..200).map(work)).await.unwrap();
    dq.advance(305 * crate::worker::MS).await; // in full swing: jobs wait in hand
    assert!(dq.health().topics[0].waiting > 0);
    let look = observer(&dq).await;
    let ran = script.log.take().len();
    let stopped = dq.shutdown(MINUTE).await;
    assert_eq!(stopped.left, 0);
    assert!(script.log.take().is_empty(), "nothing starts any more");
    let counts = look.counts::<Work>().await;
    assert_eq!((counts.delayed, counts.running), (200 - ran, 0));
    let mut waiting = look.provider().waiting::<Work>().per_page(1_000);
    for seen in waiting.next_page().await.unwrap().unwrap() {
        assert_eq!(seen.details.unwrap().attempts, 0);
    }
    let heir = script.beside(&look, 3, usual).await;
    heir.advance(SECOND).await;
    assert_eq!(script.log.take().len(), 200 - ran);
}

#[tokio::test(start_paused = true)]
async fn other_nodes_go_on_at_once_with_what_a_stopping_one_gives_back() {
    let (stuck, script) = (Script::hangs(), Script::acks());
    let dq = stuck.start(|topic| topic.timeout("0s")).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    let other = script.beside(&dq, 2, usual).await;
    dq.shutdown(Duration::ZERO).await;
    other.settle().await;
    assert_eq!(script.log.take_whats(), ["due a 0"], "no lease has to run out");
    assert_eq!(other.health().topics[0].counters.reclaimed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_order_stops_faster() {
    let script = Script::hangs();
    let dq = script.start(|topic| topic.timeout("0s")).await;
    let look = observer(&dq).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    let start = Instant::now();
    let stop = tokio::spawn(dq.shutdown(HOUR));
    handler_takes(SECOND).await;
    assert_eq!(kept(&look, "a").await.state, State::Running);
    stop.abort(); // drops the context, which wants the end at once
    look.settle().await;
    assert_eq!((kept(&look, "a").await.state, start.elapsed()), (State::Delayed, SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_node_gives_its_jobs_back() {
    let script = Script::hangs();
    let dq = script.start(usual).await;
    let look = observer(&dq).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    drop(dq);
    look.settle().await;
    assert_eq!(kept(&look, "a").await.state, State::Delayed);
}

#[tokio::test(start_paused = true)]
async fn without_rollback_the_jobs_are_left_for_others_and_no_crash_is_counted() {
    let stuck = Script::hangs();
    let dq = start(|factory| stuck.on(factory, |topic| topic.timeout("0s")).crash_rollback(false)).await;
    let look = observer(&dq).await;
    dq.provider().add(work("a")).await.unwrap();
    dq.settle().await;
    let stopped = dq.shutdown(SECOND).await;
    assert_eq!(stopped.left, 1);
    assert_eq!(kept(&look, "a").await.state, State::Running, "nobody gave it back");
    let script = Script::fails("no");
    let heir = script.beside(&look, 3, |topic| topic.max_crashes(1).retry("1h")).await;
    heir.advance(MINUTE).await;
    assert_eq!(script.log.take_whats(), ["due a 0"], "one crash would have been too much");
    assert_eq!(heir.health().topics[0].counters.reclaimed, 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_outcomes_are_sent_before_the_end() {
    let script = Script::acks();
    let dq = script.start(usual).await;
    let look = observer(&dq).await;
    let provider = dq.provider().clone();
    let jobs = provider.add_many((0..1_000).map(work));
    let (added, stopped) = tokio::join!(jobs, dq.shutdown(MINUTE));
    let taken = added.map_or(0, |jobs| jobs.into_iter().filter(Result::is_ok).count());
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    let (counts, ran) = (look.counts::<Work>().await, script.log.take().len());
    assert_eq!((counts.running, counts.delayed + ran), (0, taken), "each ran and is gone, or waits");
}

#[tokio::test(start_paused = true)]
async fn final_retry_that_runs_at_the_stop_is_finished_or_run_again_elsewhere() {
    for (grace, expected) in [(MINUTE, State::Dead), (SECOND, State::Delayed)] {
        let script = Script::fails("no").finally(|_, _| handler_takes(20 * SECOND));
        let dq = script.start(|topic| topic.retry("none")).await;
        let look = observer(&dq).await;
        dq.provider().add(work("a")).await.unwrap();
        dq.settle().await;
        dq.shutdown(grace).await;
        assert_eq!(kept(&look, "a").await.state, expected);
        script.log.take();
        let heir = script.beside(&look, 3, usual).await;
        heir.advance(HOUR).await;
        let again = script.log.take_whats();
        assert_eq!(again, if expected == State::Dead { vec![] } else { vec!["final a 1 error"] });
    }
}

#[tokio::test(start_paused = true)]
async fn the_provider_of_a_stopped_node_refuses_and_says_so() {
    let dq = Script::acks().start(usual).await;
    let provider = dq.provider().clone();
    dq.shutdown(SECOND).await;
    let refused = provider.add(work("a")).await.unwrap_err().to_string();
    assert_eq!(refused, "job `a` of topic `work` was not added: the provider was stopped");
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_answer_left_with_a_stopping_node_goes_back_too() {
    let look = start(|factory| factory.without_listeners()).await;
    let (store, faults) = FaultyStore::over(look.store());
    let dq = Harness::start_on(store, 2, |factory| Script::acks().on(factory, usual)).await;
    faults.next("transfer", Fault::AnswerLost);
    dq.provider().add(work("a")).await.unwrap();
    look.settle().await;
    assert_eq!(kept(&look, "a").await.state, State::Running, "claimed, and the node does not know");
    assert_eq!(dq.shutdown(SECOND).await.left, 0);
    assert_eq!(kept(&look, "a").await.state, State::Delayed);
}
