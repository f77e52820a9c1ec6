//! What the log says when a node ends.

use tracing::Level;

use dq::testing::Harness;

use crate::recorder::{Traces, subscribe};
use crate::scripted_listener::{HOUR, SECOND, Script, TestJob, default_settings, start, test_job};

/// A node with a job that is about to end, one that never does, and one that is not claimed, because there is no permit.
async fn busy(traces: &Traces) -> Harness {
    let script = Script::new(|job, channel| async move {
        crate::scripted_listener::handler_takes(if job.id().as_str() == "quick" { SECOND } else { 100 * HOUR }).await;
        Ok(channel.ack())
    });
    let dq = script.start(|topic| topic.concurrency(2).timeout("10h")).await;
    for id in ["quick", "slow", "later"] {
        dq.provider().add(test_job(id)).await.unwrap();
    }
    dq.settle().await;
    traces.events(Level::INFO);
    dq
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_is_one_line_with_what_became_of_what_the_node_held() {
    let (traces, _guard) = subscribe();
    let dq = busy(&traces).await;
    let store = dq.store();
    let stopped = dq.shutdown(10 * SECOND).await;
    assert_eq!((stopped.finished, stopped.given_back, stopped.cancelled), (1, 1, 1));
    assert_eq!((stopped.left, stopped.still_running), (0, 0));
    let info = traces.events(Level::INFO);
    assert_eq!(info, [" message=the node has stopped finished=1 given_back=1 cancelled=1 left=0 still_running=0"]);
    assert!(traces.events(Level::WARN).is_empty());
    let debug = traces.events(Level::DEBUG);
    let phases: Vec<_> =
        debug.iter().filter_map(|line| line.strip_prefix(" message=stopping topic=work phase=")).collect();
    assert_eq!(phases, ["Claiming", "Waiting", "Handlers", "Cancel", "Outcomes", "Lease"], "{debug:#?}");
    let other = Harness::start_on(store, 2, |factory| factory.without_listeners()).await;
    assert_eq!(other.counts::<TestJob>().await.delayed, 2);
}

#[tokio::test(start_paused = true)]
async fn run_until_returns_the_result_of_the_stop() {
    let (traces, _guard) = subscribe();
    let dq = busy(&traces).await.into_context();
    let (done, stopped) = dq.run_until(async { 7 }).await.unwrap();
    assert_eq!((done, stopped.finished, stopped.given_back, stopped.cancelled), (Some(7), 1, 1, 1));
    assert_eq!(traces.events(Level::WARN), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_dropped_says_what_to_write_instead() {
    let (traces, _guard) = subscribe();
    let dq = busy(&traces).await.into_context();
    traces.events(Level::WARN);
    let provider = dq.provider().clone();
    drop(dq);
    let warn = traces.events(Level::WARN);
    assert_eq!(warn.len(), 1, "{warn:#?}");
    for says in
        ["no job runs here any more", "let dq = factory.start().await?;", "run_until_signal", "Provider::connect"]
    {
        assert!(warn[0].contains(says), "{says}: {warn:#?}");
    }
    provider.add(test_job("still")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_told_to_stop_or_runs_nothing_is_dropped_without_a_word() {
    let (traces, _guard) = subscribe();
    let dq = Script::acks().start(default_settings).await.into_context();
    drop(tokio::time::timeout(SECOND, dq.shutdown(HOUR)).await);
    let only_provides = start(|factory| factory.without_listeners()).await.into_context();
    drop(only_provides);
    drop(Script::acks().start(default_settings).await); // the harness of a test
    Script::acks().start(default_settings).await.kill();
    assert_eq!(traces.events(Level::WARN), [""; 0]);
}
