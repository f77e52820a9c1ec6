//! How many jobs a batch has.

use super::{BatchScript, add_all};
use crate::scripted_listener::{MINUTE, SECOND, TestJob, handler_takes, start};

fn takes_a_second() -> BatchScript {
    BatchScript::new(|batch| async {
        handler_takes(SECOND).await;
        Ok(batch.rest().ack())
    })
}

fn lengths(script: &BatchScript) -> Vec<usize> {
    script.batches().iter().map(Vec::len).collect()
}

#[tokio::test(start_paused = true)]
async fn a_batch_takes_what_is_there_and_waits_for_nothing() {
    let script = BatchScript::acks();
    let dq = script.start(|topic| topic).await;
    for jobs in [1, 3, 10, 14] {
        add_all(&dq, (0..jobs).map(|id| format!("{jobs}-{id}"))).await;
        dq.settle().await;
        let lengths = lengths(&script);
        assert_eq!(lengths.iter().sum::<usize>(), jobs, "at the same instant: {lengths:?}");
        assert_eq!(lengths.len(), jobs.div_ceil(10), "{lengths:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_batch_takes_one_permit() {
    let script = takes_a_second();
    let dq = script.start(|topic| topic.concurrency(2)).await;
    add_all(&dq, 0..50).await;
    dq.settle().await;
    let health = dq.health().topics.remove(0);
    assert_eq!((lengths(&script), health.running), (vec![10, 10], 2));
    dq.advance(SECOND).await;
    assert_eq!(lengths(&script), [10, 10]);
    dq.advance(3 * SECOND).await;
    assert_eq!((lengths(&script), dq.counts::<TestJob>().await.running), (vec![10], 0));
}

#[tokio::test(start_paused = true)]
async fn batches_share_the_permits_of_the_node() {
    let script = takes_a_second();
    let dq = start(|factory| script.on(factory.node_concurrency(3), |topic| topic)).await;
    add_all(&dq, 0..100).await;
    dq.settle().await;
    assert_eq!((lengths(&script).len(), dq.health().topics[0].running), (3, 3));
    dq.advance(MINUTE).await;
    assert_eq!(dq.counts::<TestJob>().await.delayed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_bounded_by_bytes_and_a_larger_job_is_a_batch_of_its_own() {
    let script = BatchScript::acks();
    let dq = script.start(|topic| topic.batch_size(1_000).batch_bytes(10_000).concurrency(1)).await;
    let small = |id: usize| format!("{id:0>240}"); // 250 bytes and a little more
    let mut ids: Vec<_> = (0..100).map(small).collect();
    add_all(&dq, std::mem::take(&mut ids)).await;
    dq.settle().await;
    let lengths = lengths(&script);
    assert_eq!(lengths.iter().sum::<usize>(), 100);
    assert!(lengths.len() >= 3 && lengths.iter().all(|jobs| jobs * 250 <= 10_000), "{lengths:?}");
    let topic = dq.provider().topic("work").unwrap();
    for n in 0..3 {
        let json = format!(r#"{{"id": "{n}", "more": "{}"}}"#, "x".repeat(20_000));
        topic.add_json(json).id(n.to_string()).after("1s").await.unwrap();
    }
    dq.advance(2 * SECOND).await;
    assert_eq!(script.batches(), [["0"], ["1"], ["2"]]);
}

#[tokio::test(start_paused = true)]
async fn a_node_holds_few_jobs_beyond_its_batches_whatever_is_due() {
    let script = takes_a_second();
    let dq = script.start(|topic| topic.concurrency(2).batch_size(500)).await;
    for start in (0..5_000).step_by(1_000) {
        dq.provider()
            .add_many((start..start + 1_000).map(crate::scripted_listener::test_job))
            .await
            .unwrap()
            .all()
            .unwrap();
    }
    dq.settle().await;
    let mut most = 0;
    for _ in 0..20 {
        most = most.max(dq.health().topics[0].held);
        dq.advance(SECOND / 4).await;
    }
    assert!((1_000..=3_000).contains(&most), "held {most}");
    dq.advance(MINUTE).await;
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_running_batches_count_among_those_that_a_topic_may_hold() {
    let script = takes_a_second();
    let dq = script.start(|topic| topic.batch_size(1_000).batch_bytes(1 << 20).concurrency(64)).await;
    let topic = dq.provider().topic("work").unwrap();
    let large = "x".repeat(200_000);
    for n in 0..300 {
        let json = format!(r#"{{"id": "{n}", "more": "{large}"}}"#);
        topic.add_json(json).id(n.to_string()).await.unwrap(); // 60 MB in all
    }
    let (mut most, mut batches) = (0, 0);
    for _ in 0..60 {
        dq.advance(SECOND / 4).await;
        most = most.max(dq.health().topics[0].held);
        batches += lengths(&script).len();
    }
    assert!((8 << 20..=18 << 20).contains(&(most * 200_000)), "16 MiB and one answer: held {most}");
    assert!(batches > 300 / 6, "{batches}");
    assert_eq!(dq.counts::<TestJob>().await.running, 0);
}
