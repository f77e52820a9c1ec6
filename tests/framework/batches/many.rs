//! Many jobs in large batches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dq::job::Cause;

use super::BatchScript;
use crate::backend::MANY_JOBS;
use crate::scripted_listener::{HOUR, MINUTE, TestJob, test_job};

const SIZE: usize = 500;

#[tokio::test(start_paused = true)]
async fn many_jobs_run_in_full_batches_and_each_tenth_that_fails_is_retried_and_then_dead() {
    let calls = Arc::<AtomicUsize>::default();
    let runs = Arc::<Mutex<BTreeMap<String, usize>>>::default();
    let (counted, noted) = (calls.clone(), runs.clone());
    let script = BatchScript::new(move |batch| {
        counted.fetch_add(1, Relaxed);
        let mut runs = noted.lock().unwrap();
        for job in &batch {
            *runs.entry(job.id.clone()).or_default() += 1;
            if job.id.ends_with('7') {
                batch.fail(job, "each tenth");
            }
        }
        async { Ok(batch.rest().ack()) }
    });
    let dq = script.start(|topic| topic.batch(SIZE).retry("1h").dead_most(MANY_JOBS)).await;
    for start in (0..MANY_JOBS).step_by(1_000) {
        let jobs = (start..start + 1_000).map(test_job);
        dq.provider().add_many(jobs).after("10m").await.unwrap().all().unwrap();
    }
    dq.advance(11 * MINUTE).await;
    let fewest = MANY_JOBS / SIZE;
    assert!((fewest..=fewest + 1).contains(&calls.load(Relaxed)), "{} calls", calls.load(Relaxed));
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running, counts.dead), (MANY_JOBS / 10, 0, 0), "they wait for their retry");
    dq.advance(HOUR).await;
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running, counts.dead), (0, 0, MANY_JOBS / 10));
    let runs = runs.lock().unwrap().clone();
    assert_eq!(runs.len(), MANY_JOBS);
    for (id, runs) in runs {
        assert_eq!(runs, if id.ends_with('7') { 2 } else { 1 }, "{id}");
    }
    let mut pages = dq.provider().dead::<TestJob>();
    let first = pages.next_page().await.unwrap().unwrap();
    for dead in first {
        let details = dead.details.unwrap();
        assert!(dead.id.as_str().ends_with('7'));
        assert_eq!((details.attempts, details.cause), (2, Some(Cause::Error)));
    }
    let health = dq.health().topics.remove(0);
    let counters = health.counters;
    assert_eq!((health.held, health.running, health.waiting), (0, 0, 0));
    let expected = (MANY_JOBS as u64 * 9 / 10, MANY_JOBS as u64 / 10, MANY_JOBS as u64 / 10);
    assert_eq!((counters.acked, counters.retried, counters.dead), expected);
}
