//! Runs: when a job runs, how often, and what its handler receives.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dq::prelude::*;

use crate::scripted_listener::{
    HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, handler_takes, start, test_job,
};

stores!(a_job_runs_once_in_the_millisecond_it_is_due_and_is_gone: memory, file, redis);
async fn a_job_runs_once_in_the_millisecond_it_is_due_and_is_gone() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    dq.provider().add(test_job("a")).after(60 * SECOND).await.unwrap();
    dq.advance(60 * SECOND - MS).await;
    assert!(script.log.take().is_empty(), "never early");
    dq.advance(MS).await;
    assert_eq!(script.log.take(), ["60s due a 0"], "after exactly one delay, not two");
    dq.advance(2 * HOUR).await;
    assert!(script.log.take().is_empty(), "once");
    assert!(dq.job::<TestJob>("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_at_the_time_it_was_added_for() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    let clock = dq.counts::<TestJob>().await.clock;
    dq.provider().add(test_job("meeting")).at(clock.after(90 * SECOND)).await.unwrap();
    dq.provider().add(test_job("past")).at(std::time::SystemTime::UNIX_EPOCH).await.unwrap();
    dq.settle().await;
    assert_eq!(script.log.take(), ["0ns due past 0"], "a job due in the past runs at once");
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["90s due meeting 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_sees_id_due_time_headers_attempt_and_a_growing_fence() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorded = seen.clone();
    let script = Script::new(move |job, _| {
        let header = job.header("trace").map(str::to_owned);
        recorded.lock().unwrap().push((job.id().to_string(), job.attempt(), header, job.due(), job.fence()));
        async { Err("again".into()) }
    });
    let dq = script.start(|topic| topic.retry("1s, 1s")).await;
    let clock = dq.counts::<TestJob>().await.clock;
    dq.provider().add(test_job("a")).header("trace", "7").after(5 * SECOND).await.unwrap();
    dq.advance(HOUR).await;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let due = |seconds: u32| clock.after(seconds * SECOND).into();
    let what: Vec<_> =
        seen.iter().map(|(id, attempt, header, at, _)| (&**id, *attempt, header.as_deref(), *at)).collect();
    assert_eq!(what, [("a", 0, Some("7"), due(5)), ("a", 1, Some("7"), due(6)), ("a", 2, Some("7"), due(7))]);
    assert!(seen.is_sorted_by(|one, next| one.4 < next.4), "fences grow from run to run");
}

#[tokio::test(start_paused = true)]
async fn a_handler_adds_jobs_and_what_it_adds_outlives_its_ack() {
    #[delay_listener(register = false)]
    struct Chain {
        provider: Provider,
        script: Script,
    }
    impl DelayListener for Chain {
        type Job = TestJob;
        async fn on_due(&self, job: Job<TestJob>, channel: Channel) -> Result<Decided, JobError> {
            self.script.log.record(format_args!("due {}", job.id()));
            if job.id().as_str() == "first" {
                self.provider.add(test_job("second")).after(SECOND).await?;
            }
            Ok(channel.ack())
        }
    }
    let script = Script::acks();
    let dq = start(|factory| factory.provide(script.clone()).listener::<Chain>()).await;
    dq.provider().add(test_job("first")).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["0ns due first", "1s due second"]);
}

stores!(a_run_longer_than_the_lease_keeps_its_lease: memory, file, redis);
async fn a_run_longer_than_the_lease_keeps_its_lease() {
    let script = Script::takes(HOUR);
    let dq = script.start(|topic| topic.timeout("0s")).await;
    let other = script.beside(&dq, 2, default_settings).await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(script.log.take(), ["0ns due a 0"], "no node reclaims it: the heartbeat renews the lease");
    assert_eq!(other.counts::<TestJob>().await.running, 0);
    assert_eq!(dq.health().topics[0].counters.acked + other.health().topics[0].counters.acked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waited_long_for_a_permit_is_not_starved_when_that_is_free() {
    // Behind one of these runs its runner rests when the permit is free again, and the node looks just then.
    for slow in 24..=32 {
        let calls = Arc::new(AtomicUsize::new(0));
        let script = Script::new(move |_, channel| {
            let is_slow = calls.fetch_add(1, Relaxed) + 1 == slow;
            async move {
                handler_takes(if is_slow { 4 * SECOND } else { 4 * MS }).await;
                Ok(channel.ack())
            }
        });
        let dq = script.start(|topic| topic.concurrency(1).timeout("0s")).await;
        dq.provider().add_many((0..100).map(test_job)).await.unwrap().all().unwrap();
        dq.advance(MINUTE).await;
        let starved = dq.health().topics[0].counters.starved;
        assert_eq!((script.log.take().len(), starved), (100, 0), "run {slow} is slow");
        dq.kill();
    }
}
