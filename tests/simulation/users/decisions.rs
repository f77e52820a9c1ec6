//! Every decision of a listener, broadcasts, and what the work and the check may do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::prelude::*;
use dq_testing::{Ended, Faults, simulate};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "act", delay = "10s", retry = "1s, 2s")]
struct Act {
    #[job(id)]
    how: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "follow-up", delay = "5s")]
struct FollowUp {
    #[job(id)]
    of: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "news", deliver = "broadcast")]
struct News(u64);

/// What happened, and how often.
type Seen = Arc<Mutex<BTreeMap<String, u64>>>;

fn see(seen: &Seen, what: &str) -> u64 {
    let mut seen = seen.lock().unwrap();
    let times = seen.entry(what.to_owned()).or_default();
    *times += 1;
    *times
}

#[delay_listener(register = false, timeout = "3s")]
struct Acts {
    seen: Seen,
    provider: Provider,
}

impl DelayListener for Acts {
    type Job = Act;

    async fn on_due(&self, job: Job<Act>, channel: Channel) -> Result<Decided, JobError> {
        let times = see(&self.seen, &job.how);
        Ok(match job.how.as_str() {
            "rejoins" if times < 3 => channel.rejoin_after("1s"),
            "parks" => channel.park(),
            "fails" => return Err("it cannot be done".into()),
            "panics" if times < 2 => panic!("for a test"),
            "hangs" if times < 2 => std::future::pending().await,
            "adds" => {
                _ = self.provider.add(FollowUp { of: job.how.clone() }).keep_existing().await?;
                channel.ack()
            }
            _ => channel.ack(),
        })
    }

    async fn on_exhausted(&self, job: Job<Act>, _cause: &Failure) {
        see(&self.seen, &format!("{} for good", job.how));
    }
}

#[delay_listener(register = false)]
async fn follows_up(job: Job<FollowUp>, channel: Channel, seen: &Seen) -> Result<Decided, JobError> {
    see(seen, &format!("followed {}", job.of));
    Ok(channel.ack())
}

#[broadcast_listener(channels = ["news"], register = false)]
struct OnNews {
    seen: Seen,
}

impl BroadcastListener for OnNews {
    type Message = News;

    async fn on_message(&self, news: Broadcast<News>) -> Result<(), JobError> {
        see(&self.seen, &format!("news {}", news.message.0));
        Ok(())
    }
}

async fn add_all(jobs: Provider) {
    for how in ["acks", "rejoins", "parks", "fails", "panics", "hangs", "adds"] {
        while jobs.add(Act { how: how.into() }).keep_existing().await.is_err() {}
    }
    while jobs.add(News(3)).id("n").after("20s").keep_existing().await.is_err() {}
}

fn node(factory: ContextFactory, seen: Seen) -> ContextFactory {
    let factory = factory.provide(seen).listener::<Acts>().listener::<follows_up>();
    factory.broadcast_listener::<OnNews>()
}

fn every_job_ended(seen: &Seen, ended: &Ended) {
    let seen = seen.lock().unwrap();
    assert_eq!((ended.dead::<Act>(), ended.unacked::<Act>()), (&["fails".to_owned()][..], &["parks".to_owned()][..]));
    for what in ["acks", "parks", "panics", "hangs", "followed adds", "fails for good"] {
        assert!(seen.contains_key(what), "{what}: {seen:?}");
    }
    assert!(seen["rejoins"] >= 3, "{seen:?}");
    assert!(seen.get("news 3").is_none_or(|times| *times <= 4), "{seen:?}");
}

#[test]
fn every_decision_takes_effect_under_faults() {
    let run = simulate(Seen::default).node(node).work(|jobs, _| add_all(jobs));
    let summary = run.check(|seen, ended| every_job_ended(&seen, ended)).nodes(3).seeds(0..200).run();
    assert_eq!(summary.differs, None);
}

#[test]
fn the_checker_reports_nothing_under_all_faults() {
    let faults = Faults::default().clock_jumps(true).fall_backs(true).most(8);
    let summary = simulate(Seen::default).node(node).work(|jobs, _| add_all(jobs)).faults(faults).seeds(0..100).run();
    assert!(summary.faults > 200, "{summary:?}");
}

#[delay_listener(register = false, ack = "on_claim")]
async fn at_most_once(job: Job<FollowUp>, channel: Channel, seen: &Seen) -> Result<Decided, JobError> {
    see(seen, &job.of);
    Ok(channel.ack())
}

#[test]
fn a_job_that_is_acked_on_claim_runs_at_most_once() {
    let node = |factory: ContextFactory, seen| factory.provide(seen).listener::<at_most_once>();
    let work = |jobs: Provider, _| async move {
        for of in 0..4 {
            while jobs.add(FollowUp { of: of.to_string() }).keep_existing().await.is_err() {}
        }
    };
    let once = |seen: Seen, _: &Ended| assert!(seen.lock().unwrap().values().all(|times| *times == 1));
    simulate(Seen::default).node(node).work(work).check(once).seeds(0..200).run();
}

#[test]
fn a_broadcast_reaches_every_node_once_without_faults() {
    let run = simulate(Seen::default).node(node).work(|jobs, _| add_all(jobs)).faults(Faults::none()).nodes(3);
    run.check(|seen, _| assert_eq!(seen.lock().unwrap()["news 3"], 3)).seeds(0..5).run();
}

#[test]
fn the_work_acks_parked_jobs() {
    let work = |jobs: Provider, _| async move {
        while jobs.add(Act { how: "parks".into() }).keep_existing().await.is_err() {}
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await; // handler_takes: simulated time
            let seen = jobs.get::<Act>("parks").await.map_err(|error| error.to_string())?;
            match seen.map(|seen| seen.state()) {
                Some(dq::job::State::Unacked) => drop(jobs.ack::<Act>("parks").await),
                Some(_) => {}
                None => return Ok::<_, String>(()),
            }
        }
    };
    simulate(Seen::default).node(node).work(work).check(|_, ended| assert!(ended.unacked::<Act>().is_empty())).run();
}

#[test]
fn an_error_of_the_work_is_a_finding() {
    let finding = simulate(Seen::default).node(node).work(|_, _| async { Err("no") }).try_run().unwrap_err();
    assert_eq!(finding.what, "the work failed: no");
    let finding = simulate(Seen::default).node(node).check(|_, _| assert_eq!(1, 2, "no")).try_run().unwrap_err();
    assert!(finding.what.starts_with("the check panicked at tests/simulation/users/decisions.rs:"), "{finding}");
}

#[test]
fn a_node_that_cannot_start_is_a_finding_with_its_reason() {
    let without = |factory: ContextFactory, _| factory.listener::<Acts>();
    let finding = simulate(Seen::default).node(without).try_run().unwrap_err();
    assert!(finding.what.contains("`Acts`") && finding.what.contains("was not provided"), "{finding}");
}

#[test]
fn jobs_without_a_listener_are_a_finding() {
    let only = |factory: ContextFactory, seen| factory.provide(seen).listener::<follows_up>();
    let finding = simulate(Seen::default)
        .node(only)
        .work(|jobs, _| async move { jobs.add(Act { how: "acks".into() }).await.map(drop) });
    let finding = finding.faults(Faults::none()).longest(Duration::from_secs(600)).try_run().unwrap_err();
    assert!(finding.what.starts_with("not over after 10m: act: 1 jobs wait, 0 run, 0 broadcasts wait ("), "{finding}");
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "find")]
struct Find;

#[delay_listener]
async fn found(_job: Job<Find>, seen: &Seen) -> Result<(), JobError> {
    see(seen, "found");
    Ok(())
}

#[test]
fn annotated_listeners_register_on_request() {
    let work = |jobs: Provider, _| async move { jobs.add(Find).await.map(drop) };
    let run = simulate(Seen::default).node(|factory, seen| factory.provide(seen)).work(work).faults(Faults::none());
    let run = run.check(|seen, _| assert_eq!(seen.lock().unwrap()["found"], 1)).seeds(0..2);
    let without = simulate(Seen::default).node(|factory, seen| factory.provide(seen)).try_run().unwrap_err();
    assert!(without.what.contains("no listener"), "{without}");
    run.found_listeners().run();
}
