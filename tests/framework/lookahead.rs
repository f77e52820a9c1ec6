//! Lookahead: a node claims a job shortly before it is due, and starts its handler when it is.

use dq::config::TopicOverrides;
use dq::job::State;
use dq::testing::Harness;

use crate::scripted_listener::{HOUR, MS, SECOND, Script, TestJob, default_settings, stored_job, test_job};

fn ahead(topic: TopicOverrides) -> TopicOverrides {
    topic.lookahead("20ms")
}

/// A node that has claimed `a`, which is due at 1 s, but not yet `b`, which is due at 1.03 s. The time is 992 ms.
async fn claimed_early(script: &Script) -> Harness {
    let dq = script.start(ahead).await;
    for (name, after) in [("a", SECOND), ("b", SECOND + 30 * MS)] {
        dq.provider().add(test_job(name)).after(after).await.unwrap();
    }
    dq.advance(992 * MS).await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Running);
    assert_eq!(stored_job(&dq, "b").await.state, State::Delayed);
    assert_eq!(script.log.take(), [""; 0], "not early");
    let health = &dq.health().topics[0];
    assert_eq!((health.held, health.running), (1, 0));
    dq
}

stores!(a_job_that_was_claimed_early_starts_when_it_is_due: memory, file, redis);
async fn a_job_that_was_claimed_early_starts_when_it_is_due() {
    let script = Script::acks();
    let dq = claimed_early(&script).await;
    dq.advance(7 * MS).await;
    assert_eq!(script.log.take(), [""; 0], "not early");
    dq.advance(2 * MS).await;
    assert_eq!(script.log.take_without_times(), ["due a 0"]);
    dq.advance(SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due b 0"]);
    let most_late = || dq.health().topics[0].counters.most_late_ms;
    assert!(most_late() <= 1, "measured from the due time to the start");
    dq.provider().pause::<TestJob>().reason("a test").await.unwrap();
    dq.provider().add(test_job("late")).after(SECOND).await.unwrap();
    dq.advance(5 * SECOND).await;
    dq.provider().resume::<TestJob>().await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!((script.log.take_without_times(), most_late()), (vec!["due late 0".to_owned()], 4_000));
}

stores!(jobs_that_are_due_shortly_after_one_another_cost_one_transfer_and_start_in_order: memory, file, redis);
async fn jobs_that_are_due_shortly_after_one_another_cost_one_transfer_and_start_in_order() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(ahead).await;
    for (name, after) in [("c", 1_009), ("a", 1_000), ("b", 1_004)] {
        dq.provider().add(test_job(name)).after(after * MS).await.unwrap();
    }
    dq.settle().await;
    let before = faults.requests_for("transfer");
    dq.advance(2 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "due b 0", "due c 0"]);
    assert_eq!(faults.requests_for("transfer") - before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_added_within_the_lookahead_starts_when_it_is_due() {
    let script = Script::acks();
    let dq = script.start(ahead).await;
    dq.provider().add(test_job("a")).after(10 * MS).await.unwrap();
    dq.advance(9 * MS).await;
    assert_eq!((stored_job(&dq, "a").await.state, script.log.take().len()), (State::Running, 0));
    dq.advance(2 * MS).await;
    assert_eq!(script.log.take().len(), 1);
}

stores!(a_delete_or_cancel_of_a_job_that_was_claimed_early_keeps_its_handler_from_starting: memory, file, redis);
async fn a_delete_or_cancel_of_a_job_that_was_claimed_early_keeps_its_handler_from_starting() {
    for cancels in [false, true] {
        let script = Script::acks();
        let dq = claimed_early(&script).await;
        let provider = dq.provider();
        let ended = if cancels { provider.cancel::<TestJob>("a") } else { provider.delete::<TestJob>("a") };
        let ended = ended.await.unwrap();
        assert_eq!((ended.found, ended.changed), (Some(State::Running), true));
        dq.advance(HOUR).await;
        assert_eq!(script.log.take_without_times(), ["due b 0"]);
    }
}

stores!(a_node_that_stops_gives_back_what_it_claimed_early: memory, file, redis);
async fn a_node_that_stops_gives_back_what_it_claimed_early() {
    let script = Script::acks();
    let dq = claimed_early(&script).await;
    let other = script.beside(&dq, 2, default_settings).await;
    dq.into_context().shutdown(SECOND).await;
    let job = stored_job(&other, "a").await;
    assert_eq!((job.state, job.attempts), (State::Delayed, 0));
    other.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "due b 0"]);
}

stores!(a_node_claims_no_more_early_than_it_has_permits_and_leaves_the_rest_to_others: memory, file, redis);
async fn a_node_claims_no_more_early_than_it_has_permits_and_leaves_the_rest_to_others() {
    let script = Script::acks();
    let one = |topic: TopicOverrides| ahead(topic).concurrency(1);
    let dq = script.start(one).await;
    for (name, after) in [("a", 1_000), ("b", 1_001)] {
        dq.provider().add(test_job(name)).after(after * MS).await.unwrap();
    }
    dq.advance(990 * MS).await;
    assert_eq!(stored_job(&dq, "a").await.state, State::Running);
    assert_eq!(stored_job(&dq, "b").await.state, State::Delayed);
    let other = script.beside(&dq, 2, one).await;
    other.advance(5 * MS).await;
    assert_eq!(stored_job(&dq, "b").await.state, State::Running, "another node has a permit");
    other.advance(SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "due b 0"]);
}
