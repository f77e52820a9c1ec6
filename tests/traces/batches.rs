//! What the log says of a batch that fails as a whole: one line for what its jobs share.

use tracing::Level;

use dq::listener::RetryDelay;
use dq::prelude::*;
use dq::testing::Harness;

use crate::recorder::{Traces, subscribe};
use crate::scripted_listener::{MINUTE, SECOND, TestJob, start, test_job};

#[delay_listener(register = false, batch_size = 20, timeout = "10s", retry = "1m x 2")]
async fn fails(batch: Batch<TestJob>) -> Result<(), JobError> {
    match batch.len() {
        20 => Err("the database is down".into()),
        _ => std::future::pending().await,
    }
}

/// A node, with so many jobs that are due.
async fn with_jobs(traces: &Traces, jobs: usize) -> Harness {
    let dq = start(|factory| factory.batch_listener::<fails>()).await;
    drop((traces.events(Level::INFO), traces.events(Level::DEBUG)));
    dq.provider().add_many((10..10 + jobs).map(test_job)).await.unwrap().all().unwrap();
    dq
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_is_a_line_until_its_jobs_are_dead() {
    let (traces, _guard) = subscribe();
    let dq = with_jobs(&traces, 20).await;
    dq.settle().await;
    let info = traces.events(Level::INFO);
    assert_eq!(info.len(), 1, "{info:#?}");
    let says = "a batch failed, and its jobs are retried topic=work jobs=20 first=[\"10\", \"11\", \"12\"] attempts_left=2 \
                cause=error error=\"the database is down\"";
    assert!(info[0].contains(says), "{info:#?}");
    let debug = traces.events(Level::DEBUG);
    assert_eq!(debug.iter().filter(|line| line.contains("the handler of the batch failed")).count(), 20, "{debug:#?}");
    assert_eq!((traces.events(Level::WARN), traces.events(Level::ERROR)), (vec![], vec![]));
    dq.advance(MINUTE).await;
    let warn = traces.events(Level::WARN);
    assert!(warn.len() == 1 && warn[0].contains("jobs=20") && warn[0].contains("attempts_left=1"), "{warn:#?}");
    dq.advance(MINUTE).await;
    let (warn, error) = (traces.events(Level::WARN), traces.events(Level::ERROR));
    assert!(warn.len() == 1 && warn[0].contains("attempts_left=0"), "{warn:#?}");
    assert_eq!(error.iter().filter(|line| line.contains("the job is DEAD")).count(), 20, "{error:#?}");
    assert_eq!(traces.events(Level::INFO), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_times_out_is_a_line_and_a_batch_of_one_is_that_of_its_job() {
    let (traces, _guard) = subscribe();
    for (jobs, says) in
        [(3, "jobs=3 first=[\"10\", \"11\", \"12\"] attempts_left=2 cause=timeout"), (1, "job.id=10 attempt=1 of=3")]
    {
        let dq = with_jobs(&traces, jobs).await;
        dq.advance(11 * SECOND).await;
        let info = traces.events(Level::INFO);
        assert!(info.len() == 1 && info[0].contains(says), "{info:#?}");
        drop(dq);
        traces.events(Level::INFO);
    }
}

/// Never returns. Its code says when a job runs again, unless the job has a retry policy of its own.
#[delay_listener(register = false, batch_size = 20, timeout = "10s")]
struct Hangs;

impl BatchListener for Hangs {
    type Job = TestJob;

    async fn on_batch(&self, _: Batch<TestJob>) -> Result<Decided, JobError> {
        std::future::pending().await
    }

    fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
        RetryDelay::After(MINUTE)
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_times_out_is_a_line_even_if_one_job_has_a_policy_of_its_own() {
    let (traces, _guard) = subscribe();
    let dq = start(|factory| factory.batch_listener::<Hangs>()).await;
    dq.provider().add(test_job(10)).retry("1m x 2").after(SECOND).await.unwrap();
    dq.provider().add_many((11..13).map(test_job)).after(SECOND).await.unwrap().all().unwrap();
    traces.events(Level::INFO);
    dq.advance(12 * SECOND).await;
    let info = traces.events(Level::INFO);
    let says = |line: &&String| line.contains("a batch failed, and its jobs are retried");
    let lines: Vec<_> = info.iter().filter(says).collect();
    assert!(info.len() == 2 && lines.len() == 2, "{info:#?}");
    assert!(
        lines[0].contains("jobs=1 first=[\"10\"]") && lines[1].contains("jobs=2 first=[\"11\", \"12\"]"),
        "{info:#?}"
    );
}
