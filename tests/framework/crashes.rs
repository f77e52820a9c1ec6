//! Nodes that die, and what happens to the jobs they held.

use dq::job::{Cause, State};
use dq::listener::AckMode;
use dq::testing::Harness;

use crate::scripted_listener::{
    HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, no_timeout, stored_job, test_job,
};

stores!(the_jobs_of_a_dead_node_run_again_within_a_lease_and_one_and_a_half_renewals: memory, file, redis);
async fn the_jobs_of_a_dead_node_run_again_within_a_lease_and_one_and_a_half_renewals() {
    // The other node is there before the death, or it comes after that and learns of the lease from its first answers.
    for (comes_after, within) in [(false, 22_500 * MS), (true, 23_500 * MS)] {
        let (stuck, script) = (Script::hangs(), Script::acks());
        let holder = stuck.start(no_timeout).await;
        let store = holder.store();
        let starts = || Harness::start_on(store.clone(), 2, |factory| script.on(factory, default_settings));
        let there = if comes_after { None } else { Some(starts().await) };
        holder.provider().add(test_job("mine")).await.unwrap();
        holder.settle().await;
        assert_eq!(holder.health().topics[0].running, 1, "the first node was awake");
        holder.advance(MINUTE).await;
        holder.kill();
        let other = if let Some(other) = there { other } else { starts().await };
        other.advance(9 * SECOND).await;
        assert!(script.log.take().is_empty(), "its lease has not expired");
        assert_eq!(other.counts::<TestJob>().await.running, 1);
        other.advance(within - 9 * SECOND).await;
        let lines = script.log.take_without_times();
        assert_eq!(lines, ["due mine 0"], "no attempt is spent; 15 s and 7.5 s");
        assert_eq!(other.health().topics[0].counters.reclaimed, 1);
    }
}

/// Lets one node after another die while it runs the same job. Returns the last node, and what each node ran.
async fn killed_by_one_job(nodes: u64) -> (Harness, Vec<Vec<String>>) {
    let script = Script::hangs();
    let mut dq = script.start(no_timeout).await;
    dq.provider().add(test_job("killer")).await.unwrap();
    let mut ran = Vec::new();
    for seed in 2..2 + nodes {
        dq.settle().await;
        let next = script.beside(&dq, seed, no_timeout).await;
        dq.kill();
        next.advance(30 * SECOND).await;
        ran.push(script.log.take_without_times());
        dq = next;
    }
    (dq, ran)
}

stores!(an_on_exhausted_that_kills_its_node_is_not_repeated: memory, file, redis);
async fn an_on_exhausted_that_kills_its_node_is_not_repeated() {
    let (dq, ran) = killed_by_one_job(2).await;
    assert_eq!(ran.concat(), ["due killer 0", "due killer 0", "due killer 0"]);
    let deadly = Script::acks().on_exhausted(|_, _| std::future::pending());
    let next = deadly.beside(&dq, 50, no_timeout).await;
    dq.kill();
    next.advance(MINUTE).await;
    assert_eq!(
        deadly.log.take_without_times(),
        ["final killer 0 crashes"],
        "the third crash: only `on_exhausted` runs"
    );
    let script = Script::acks();
    let successor = script.beside(&next, 51, default_settings).await;
    next.kill();
    successor.advance(MINUTE).await;
    assert!(script.log.take().is_empty(), "no handler runs any more");
    let dead = stored_job(&successor, "killer").await;
    assert_eq!((dead.state, dead.cause, dead.attempts), (State::Dead, Some(Cause::Crashes), 0));
}

stores!(exhaustion_is_durable_so_another_node_runs_on_exhausted_and_never_on_due: memory, file, redis);
async fn exhaustion_is_durable_so_another_node_runs_on_exhausted_and_never_on_due() {
    let deadly = Script::fails("no").on_exhausted(|_, _| std::future::pending());
    let dq = deadly.runs(|topic| no_timeout(topic).retry("none")).await;
    assert_eq!(deadly.log.take_without_times(), ["due a 0", "final a 1 error"]);
    let script = Script::acks();
    let successor = script.beside(&dq, 2, |topic| topic.ack(AckMode::OnReturn).retry("1m x 9")).await;
    dq.kill();
    successor.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["final a 1 error"]);
    let dead = stored_job(&successor, "a").await;
    assert_eq!((dead.state, dead.cause, dead.error.as_str()), (State::Dead, Some(Cause::Error), "no"));
}

stores!(on_park_timeout_runs_again_when_its_node_dies: memory, file, redis);
async fn on_park_timeout_runs_again_when_its_node_dies() {
    let stuck = Script::parks().on_park_timeout(|_| std::future::pending());
    let dq = stuck.lives(|topic| no_timeout(topic).park_timeout("1h"), HOUR + 10 * MINUTE).await;
    assert_eq!(stuck.log.take_without_times(), ["due a 0", "aged a 0"]);
    let script = Script::acks();
    let successor = script.beside(&dq, 2, |topic| topic.park_timeout("1h")).await;
    dq.kill();
    successor.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["aged a 0"], "`on_due` never runs for it");
}
