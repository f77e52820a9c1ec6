//! A seed is the same run again, and a run that differs from itself is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dq::prelude::*;
use dq_testing::{Faults, Simulation, simulate};
use serde::{Deserialize, Serialize};
use tokio::time::sleep as handler_takes;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "tick", delay = "2s")]
struct Tick;

#[delay_listener(register = false)]
struct Ticks {
    sum: Arc<AtomicU64>,
    takes: Duration,
}

impl DelayListener for Ticks {
    type Job = Tick;

    async fn on_due(&self, _job: Job<Tick>, channel: Channel) -> Result<Decided, JobError> {
        let start = tokio::time::Instant::now();
        let sum = Arc::clone(&self.sum);
        let takes = self.takes;
        let part = tokio::spawn(async move {
            handler_takes(takes).await;
            sum.fetch_add(1, Relaxed)
        });
        let done = tokio::time::timeout(Duration::from_secs(5), part).await;
        assert_eq!((start.elapsed(), done.is_ok()), (self.takes, true));
        Ok(channel.ack())
    }
}

fn ticks(takes: impl Fn() -> Duration + Send + Sync + 'static) -> Simulation<Arc<AtomicU64>> {
    simulate(|| Arc::new(AtomicU64::new(0)))
        .node(move |factory, sum| factory.provide(sum).provide(takes()).listener::<Ticks>())
        .work(|jobs, _| async move {
            for _ in 0..5 {
                jobs.add(Tick).await?;
                tokio::time::sleep(Duration::from_secs(1)).await; // handler_takes: simulated time
            }
            Ok::<_, dq::provider::CallError>(())
        })
}

#[test]
fn a_finding_has_the_same_log_each_time() {
    let find = || ticks(|| Duration::from_millis(1_500)).check(|_, _| Err("always")).try_run().unwrap_err();
    let (first, second) = (find(), find());
    assert_eq!((&first.what[..], first.seed, &first.differs), ("always", 0, &None));
    assert!(first.log.len() > 50 && first.log == second.log, "{} lines", first.log.len());
    assert_eq!(first.account, second.account);
}

#[test]
fn tokio_time_in_handlers_and_what_they_spawn_is_simulated() {
    let all = |sum: Arc<AtomicU64>, _: &dq_testing::Ended| assert_eq!(sum.load(Relaxed), 5);
    let summary = ticks(|| Duration::from_millis(1_500)).faults(Faults::none()).check(all).seeds(0..20).run();
    assert_eq!((summary.handled, &summary.differs), (100, &None));
    assert!(summary.simulated > Duration::from_secs(20 * 60), "{summary:?}");
}

#[test]
fn a_run_that_differs_from_itself_is_reported() {
    let calls = AtomicU64::new(0);
    let takes = move || Duration::from_millis(1_000 + calls.fetch_add(1, Relaxed));
    let finding = ticks(takes).check(|_, _| Err("always")).try_run().unwrap_err();
    assert!(finding.differs.is_some(), "{finding}");
    assert!(finding.to_string().contains("NOT the same when it was run again"), "{finding}");
}

#[test]
fn a_variable_names_the_one_seed_to_run() {
    let test = "users::decisions::every_decision_takes_effect_under_faults";
    let mut run = std::process::Command::new(std::env::current_exe().unwrap());
    let run = run.args([test, "--exact", "--nocapture"]).env("DQ_SEED", "5").output().unwrap();
    let printed = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{printed}");
    assert!(printed.contains("seed 5 finds nothing. What happened, in simulated time:"), "{printed}");
    assert!(printed.contains(" runs act/fails: run 3, fence "), "{printed}");
}

#[test]
fn a_job_with_an_absolute_time_is_due_at_it() {
    let due = |factory: ContextFactory, sum| factory.provide(sum).provide(Duration::from_secs(1)).listener::<Ticks>();
    let work = |jobs: Provider, _| async move {
        let at = dq_testing::now() + Duration::from_secs(7_200);
        jobs.add(Tick).at(at).await.map(drop)
    };
    let run = simulate(|| Arc::new(AtomicU64::new(0))).node(due).work(work).faults(Faults::none()).seeds(0..3);
    let summary = run.check(|_, _| assert!(dq_testing::now() < std::time::SystemTime::now())).run();
    assert_eq!(summary.handled, 3);
    assert!((7_200 * 3..8_000 * 3).contains(&summary.simulated.as_secs()), "{summary:?}");
}

#[delay_listener(register = false)]
async fn blocks(_job: Job<Tick>, channel: Channel) -> Result<Decided, JobError> {
    tokio::task::spawn_blocking(|| 7).await?;
    Ok(channel.ack())
}

#[test]
fn a_handler_may_use_threads() {
    let work = |jobs: Provider, ()| async move { jobs.add(Tick).await.map(drop) };
    let run = simulate(|| ()).node(|factory, ()| factory.listener::<blocks>()).work(work).faults(Faults::none());
    assert_eq!(run.seeds(0..5).run().handled, 5);
}
