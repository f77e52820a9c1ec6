//! Statistics: where its topic keeps them, the store counts what a node does.

use dq::config::TopicOverrides;
use dq::inspect::{RunStats, StatsBucket};
use dq::testing::Harness;
use dq_tests::Fault;

use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, default_settings, test_job};

fn counts(topic: TopicOverrides) -> TopicOverrides {
    topic.retry("none").statistics(true)
}

async fn past(dq: &Harness) -> Option<RunStats> {
    dq.provider().inspect().run_stats("work").await.unwrap()
}

async fn hour(dq: &Harness) -> StatsBucket {
    past(dq).await.expect("the topic counts").minutes.whole
}

#[tokio::test(start_paused = true)]
async fn runs_are_counted_where_the_topic_keeps_statistics_and_nowhere_else() {
    for keeps in [false, true] {
        let script = Script::fails("no");
        let dq = script.start(if keeps { counts } else { default_settings }).await;
        dq.provider().add(test_job("a")).after(SECOND).await.unwrap();
        dq.advance(MINUTE).await;
        let past = past(&dq).await;
        assert_eq!(past.is_some(), keeps);
        let Some(past) = past else { continue };
        let StatsBucket { claimed, ran, done, failed, dead, .. } = past.hours.whole;
        assert_eq!((claimed, ran, done, failed, dead), (1, 1, 0, 1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_expired_is_dead_and_has_not_run() {
    let script = Script::acks();
    let dq = script.start(counts).await;
    dq.provider().topic("work").unwrap().pause().reason("it shall expire").await.unwrap();
    dq.provider().add(test_job("a")).expires_after("1s").await.unwrap();
    dq.advance(10 * SECOND).await;
    dq.provider().topic("work").unwrap().resume().await.unwrap();
    dq.advance(SECOND).await;
    let hour = hour(&dq).await;
    assert_eq!((hour.claimed, hour.ran, hour.dead), (1, 0, 1));
    let late = hour.max_lateness.expect("it was claimed");
    assert!((10 * SECOND..11 * SECOND).contains(&late), "{late:?}");
}

stores!(a_node_goes_on_counting_after_an_outage: memory, file, redis);
async fn a_node_goes_on_counting_after_an_outage() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(counts).await;
    faults.fail_all(Fault::Unavailable);
    dq.advance(MINUTE).await;
    faults.clear();
    dq.advance(MINUTE).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!((hour(&dq).await.claimed, hour(&dq).await.done), (1, 1));
    dq.advance(2 * HOUR).await;
    assert_eq!(hour(&dq).await.ran, 0, "an hour has 60 minutes");
}
