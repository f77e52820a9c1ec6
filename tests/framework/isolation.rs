//! Jobs that may have killed their process: how they run, and what goes on beside them (rule 19).

use std::future::pending;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::job::{Cause, NodeId, State};
use dq::prelude::*;
use dq::store::Store;
use dq::store::step::{DEFAULT_BYTES, Reclaim, Scan};
use dq::testing::Harness;
use dq_tests::Fault;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::concurrency::metered;
use crate::scripted_listener::{
    HOUR, Log, MINUTE, MS, SECOND, Script, TestJob, faulty_store, handler_takes, no_timeout, start, stored_job,
    test_job, work_key,
};

/// A job of another topic of the same nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, DelayJob)]
#[job(topic = "neighbours")]
struct Neighbour {
    #[job(id)]
    id: u32,
}

/// What the neighbours do.
#[derive(Clone)]
struct Pace {
    log: Log,
    takes: Duration,
}

#[delay_listener(register = false)]
async fn neighbour(job: Job<Neighbour>, channel: Channel, pace: &Pace) -> Result<Decided, JobError> {
    pace.log.record(format_args!("begins {}", job.id()));
    handler_takes(pace.takes).await;
    pace.log.record(format_args!("ends {}", job.id()));
    Ok(channel.ack())
}

/// Adds both listeners to a factory.
fn both<'a>(script: &'a Script, pace: &'a Pace, cap: u32) -> impl FnOnce(ContextFactory) -> ContextFactory + 'a {
    move |factory| {
        let factory = script.on(factory, |topic| no_timeout(topic).max_crashes(cap).retry("none"));
        let factory = factory.provide(pace.clone()).listener::<neighbour>();
        factory.topic("neighbours", |topic| no_timeout(topic).max_crashes(cap))
    }
}

/// A script whose jobs of this name hang until somebody kills the node, while all others take `time`.
fn one_hangs(time: Duration) -> Script {
    Script::new(move |job, channel| async move {
        if job.id().as_str() == "killer" {
            pending::<()>().await;
        }
        handler_takes(time).await;
        Ok(channel.ack())
    })
}

/// Kills the node and starts another one on the same store.
async fn replace(dq: Harness, seed: u64, with: impl FnOnce(ContextFactory) -> ContextFactory) -> Harness {
    let next = dq.another(seed, with).await;
    dq.kill();
    next
}

/// Lets the node die as soon as the job named `killer` has run for a second, until the killer is DEAD. Returns the last
/// node and how often the killer killed.
async fn until_the_killer_is_dead(mut dq: Harness, script: &Script, pace: &Pace, cap: u32) -> (Harness, u32) {
    for seed in 2.. {
        let deadline = Instant::now() + HOUR;
        while Instant::now() < deadline && !script.log.take().iter().any(|line| line.contains("due killer")) {
            dq.advance(50 * MS).await;
            if stored_job(&dq, "killer").await.state == State::Dead {
                return (dq, u32::try_from(seed).unwrap() - 2);
            }
        }
        assert!(Instant::now() < deadline, "the killer neither runs nor is DEAD");
        dq.advance(SECOND).await;
        dq = replace(dq, seed, both(script, pace, cap)).await;
    }
    unreachable!()
}

stores!(a_killer_is_dead_within_two_crashes_of_its_cap_and_no_neighbour_in_any_topic: memory, file, redis);
async fn a_killer_is_dead_within_two_crashes_of_its_cap_and_no_neighbour_in_any_topic() {
    for cap in [1, 2, 3] {
        let (script, pace) = (one_hangs(4 * SECOND), Pace { log: Log::new(), takes: 4 * SECOND });
        let dq = start(both(&script, &pace, cap)).await;
        dq.provider().add_many((0..8).map(|id| Neighbour { id })).await.unwrap().all().unwrap();
        dq.provider().add_many(["1", "2", "killer", "3", "4"].map(test_job)).await.unwrap().all().unwrap();
        let (dq, kills) = until_the_killer_is_dead(dq, &script, &pace, cap).await;
        assert!((cap..=cap + 2).contains(&kills), "{kills} kills under a cap of {cap}");
        dq.advance(HOUR).await;
        let (work, neighbours) = (dq.counts::<TestJob>().await, dq.counts::<Neighbour>().await);
        assert_eq!((work.dead, work.delayed, work.running), (1, 0, 0), "cap {cap}");
        assert_eq!((neighbours.dead, neighbours.delayed, neighbours.running), (0, 0, 0), "cap {cap}");
        assert_eq!(stored_job(&dq, "killer").await.cause, Some(Cause::Crashes));
    }
}

/// 64 jobs whose node something outside has killed twice.
async fn killed_twice() -> Harness {
    let stuck = Script::hangs();
    let dq = stuck.start(no_timeout).await;
    dq.provider().add_many((0..64).map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let next = stuck.beside(&dq, 2, no_timeout).await;
    dq.kill();
    next.advance(25 * SECOND).await;
    assert_eq!(stuck.log.take().len(), 128, "both nodes ran all of them");
    next
}

stores!(a_node_that_died_twice_runs_its_jobs_in_groups_beside_new_work: memory, file, redis);
async fn a_node_that_died_twice_runs_its_jobs_in_groups_beside_new_work() {
    let dq = killed_twice().await;
    let script = Script::new(|job, channel| async move {
        handler_takes(if job.id().as_str().starts_with("new") { SECOND / 10 } else { 3 * SECOND }).await;
        Ok(channel.ack())
    });
    let next = script.beside(&dq, 3, no_timeout).await;
    dq.kill();
    next.advance(22 * SECOND).await;
    let start = Instant::now();
    for second in 0..30 {
        next.provider().add_many((0..10).map(|n| test_job(format!("new-{second}-{n}")))).await.unwrap().all().unwrap();
        next.advance(SECOND).await;
        let started = script.log.take_without_times();
        let new = started.iter().filter(|line| line.contains("new")).count();
        assert_eq!(new, 10, "new jobs start at once, {:?} after the first", start.elapsed());
    }
    let counts = next.counts::<TestJob>().await;
    assert_eq!((counts.delayed, counts.running, counts.dead), (0, 0, 0), "all of them are done within 30 s");
}

#[tokio::test(start_paused = true)]
async fn quarantined_jobs_take_half_of_the_permits_at_most() {
    let stuck = Script::hangs();
    let dq = stuck.start(|topic| no_timeout(topic).max_crashes(2)).await;
    dq.provider().add_many((0..9).map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let (script, meter) = metered(SECOND);
    let next = script.beside(&dq, 2, |topic| no_timeout(topic).max_crashes(2).concurrency(7)).await;
    dq.kill();
    next.advance(MINUTE).await;
    assert_eq!((meter.most.load(Relaxed), script.log.take().len()), (3, 9));
}

#[tokio::test(start_paused = true)]
async fn with_one_permit_quarantined_and_ordinary_jobs_alternate() {
    let stuck = Script::hangs();
    let dq = stuck.start(|topic| no_timeout(topic).max_crashes(2)).await;
    dq.provider().add_many(["q1", "q2", "q3"].map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let script = Script::takes(SECOND);
    let next = script.beside(&dq, 2, |topic| no_timeout(topic).max_crashes(2).concurrency(1)).await;
    dq.kill();
    next.advance(10 * SECOND).await;
    next.provider().add_many((0..20).map(|n| test_job(format!("o{n}")))).after("10s").await.unwrap().all().unwrap();
    next.advance(MINUTE).await;
    let starts = script.log.take_without_times();
    let quarantined: Vec<_> = (0..starts.len()).filter(|n| starts[*n].starts_with("due q")).collect();
    assert_eq!((starts.len(), quarantined.len()), (23, 3), "{starts:?}");
    assert!(quarantined.windows(2).all(|pair| pair[1] == pair[0] + 2), "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_without_a_crash_run_on_all_permits_whatever_the_cap() {
    for cap in [1, 2, 3] {
        let script = Script::takes(SECOND);
        let dq = script.start(|topic| topic.max_crashes(cap).concurrency(7)).await;
        dq.provider().add_many((0..70).map(test_job)).await.unwrap().all().unwrap();
        let start = Instant::now();
        dq.advance(10 * SECOND + 500 * MS).await;
        let counts = dq.counts::<TestJob>().await;
        assert_eq!((counts.delayed, counts.running), (0, 0), "cap {cap}, {:?}", start.elapsed());
    }
}

/// A node with a job that must run alone, because its groups have died. It is due again once the lease of the last node is
/// over.
async fn node_with_a_job_that_must_be_alone(script: &Script, pace: &Pace) -> Harness {
    let stuck = Script::hangs();
    let dq = start(both(&stuck, pace, 1)).await;
    dq.provider().add_many(["quarantined", "companion"].map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let dq = replace(dq, 2, both(&stuck, pace, 1)).await;
    dq.advance(30 * SECOND).await;
    assert_eq!(stuck.log.take().len(), 4, "both ran twice, at last in a group");
    dq.provider().delete::<TestJob>("companion").await.unwrap();
    replace(dq, 3, both(script, pace, 1)).await
}

fn times(lines: &[String], what: &str) -> Vec<f64> {
    let lines = lines.iter().filter(|line| line.contains(what));
    lines.map(|line| line.split_once("s ").unwrap().0.parse().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_that_must_be_alone_waits_for_the_handlers_of_other_topics_and_they_for_it() {
    let (script, pace) = (Script::takes(5 * SECOND), Pace { log: Log::new(), takes: 3 * SECOND });
    let dq = node_with_a_job_that_must_be_alone(&script, &pace).await;
    for first in [0, 1_000] {
        dq.provider().add_many((first..first + 1_000).map(|id| Neighbour { id })).await.unwrap().all().unwrap();
    }
    dq.advance(10 * MINUTE).await;
    let (starts, neighbours) = (times(&script.log.take(), "due quarantined"), pace.log.take());
    let [start] = starts[..] else { panic!("{starts:?}") };
    let (begins, ended) = (times(&neighbours, "begins"), times(&neighbours, "ends"));
    let before = begins.iter().filter(|begin| **begin < start).count();
    assert_eq!(ended.iter().filter(|end| **end <= start).count(), before, "those that ran before have returned");
    assert!(before > 0 && begins.iter().all(|begin| *begin < start || *begin >= start + 5.0), "none starts beside it");
    assert_eq!(begins.len(), 2_000, "the others run afterwards");
}

/// A node whose eight jobs must each run alone. They are due again once the lease of the last node is over.
async fn node_with_eight_jobs_that_must_be_alone(script: &Script, pace: &Pace) -> Harness {
    let stuck = Script::hangs();
    let dq = start(both(&stuck, pace, 1)).await;
    dq.provider().add_many((0..8).map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let dq = replace(dq, 2, both(&stuck, pace, 1)).await;
    dq.advance(30 * SECOND).await;
    assert_eq!(stuck.log.take().len(), 16, "all of them ran twice, at last in a group");
    replace(dq, 3, both(script, pace, 1)).await
}

#[tokio::test(start_paused = true)]
async fn jobs_that_must_be_alone_follow_each_other_while_nothing_else_is_due() {
    let (script, pace) = (Script::takes(4 * SECOND), Pace { log: Log::new(), takes: SECOND });
    let dq = node_with_eight_jobs_that_must_be_alone(&script, &pace).await;
    dq.provider().add_many((0..3).map(|id| Neighbour { id })).after("1h").await.unwrap().all().unwrap();
    dq.advance(2 * MINUTE).await;
    let starts = times(&script.log.take(), "due");
    assert_eq!(starts.len(), 8, "{starts:?}");
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] < 4.1), "each of them takes 4 s: {starts:?}");
}

#[tokio::test(start_paused = true)]
async fn between_jobs_that_must_be_alone_what_is_due_in_any_topic_has_as_much_time() {
    let (script, pace) = (Script::takes(4 * SECOND), Pace { log: Log::new(), takes: SECOND / 10 });
    let dq = node_with_eight_jobs_that_must_be_alone(&script, &pace).await;
    for id in 0..1_200 {
        dq.provider().add(Neighbour { id }).await.unwrap();
        dq.advance(100 * MS).await;
    }
    let (starts, begins) = (times(&script.log.take(), "due"), times(&pace.log.take(), "begins"));
    assert_eq!((starts.len(), begins.len()), (8, 1_200), "{starts:?}");
    for pair in starts.windows(2) {
        let beside = begins.iter().filter(|begin| **begin > pair[0] && **begin < pair[0] + 4.0).count();
        assert!(beside == 0 && pair[1] - pair[0] > 7.9, "{beside} ran beside it: {starts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_of_other_topics_keep_half_of_the_time_while_a_job_waits_to_be_alone() {
    let (script, pace) = (Script::acks(), Pace { log: Log::new(), takes: 40 * SECOND });
    let dq = node_with_a_job_that_must_be_alone(&script, &pace).await;
    dq.advance(20 * SECOND).await; // the job is due again in a moment, and neighbours run all the time
    for id in 0..600 {
        dq.provider().add(Neighbour { id }).await.unwrap();
        dq.advance(SECOND).await;
    }
    let (starts, begins) = (times(&script.log.take(), "due quarantined"), times(&pace.log.take(), "begins"));
    assert_eq!(starts.len(), 1, "it runs in spite of them");
    let closed: Vec<_> = begins.windows(2).map(|pair| pair[1] - pair[0]).filter(|pause| *pause > 1.5).collect();
    assert!(!closed.is_empty() && closed.iter().sum::<f64>() <= 600.0 / 2.0, "{closed:?}");
    let seconds: Vec<_> = closed.iter().take(5).map(|pause| pause.round()).collect();
    assert_eq!(seconds, [2.0, 4.0, 8.0, 16.0, 32.0], "each wait is twice as long as the one before");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_for_hours_keeps_no_job_from_running() {
    let (script, pace) = (Script::acks(), Pace { log: Log::new(), takes: 5 * HOUR });
    let dq = node_with_a_job_that_must_be_alone(&script, &pace).await;
    dq.provider().add(Neighbour { id: 1 }).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(script.log.take_without_times(), ["due quarantined 0"]);
    assert_eq!(dq.counts::<Neighbour>().await.running, 1, "the other handler goes on");
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_between_the_last_run_of_a_job_that_is_alone_and_its_on_exhausted() {
    let script = Script::new(|_, _| async {
        handler_takes(SECOND).await;
        Err("no".into())
    });
    let script = script.on_exhausted(|_, _| handler_takes(5 * SECOND));
    let pace = Pace { log: Log::new(), takes: SECOND / 10 };
    let dq = node_with_a_job_that_must_be_alone(&script, &pace).await;
    for id in 0..600 {
        dq.provider().add(Neighbour { id }).await.unwrap();
        dq.advance(100 * MS).await;
    }
    let (lines, begins) = (script.log.take(), times(&pace.log.take(), "begins"));
    let (due, last) = (times(&lines, "due quarantined"), times(&lines, "final quarantined"));
    let ([due], [last]) = (&due[..], &last[..]) else { panic!("{lines:?}") };
    let beside = begins.iter().filter(|begin| **begin >= *due && **begin < last + 5.0).count();
    assert_eq!(beside, 0, "{due} to {last}: {begins:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_alone_by_chance_gives_way_to_others() {
    let stuck = Script::hangs();
    let pace = Pace { log: Log::new(), takes: SECOND };
    let dq = start(both(&stuck, &pace, 2)).await;
    dq.provider().add(test_job("quarantined")).await.unwrap();
    dq.settle().await;
    let script = Script::takes(MINUTE);
    let dq = replace(dq, 2, both(&script, &pace, 2)).await;
    dq.advance(30 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due quarantined 0"], "it runs alone");
    dq.provider().add(Neighbour { id: 1 }).await.unwrap();
    dq.provider().add(test_job("other")).await.unwrap();
    dq.settle().await;
    assert_eq!((pace.log.take().len(), script.log.take().len()), (1, 1), "both start at once, beside it");
    let dq = replace(dq, 3, both(&script, &pace, 2)).await;
    dq.advance(MINUTE).await;
    let quarantined = stored_job(&dq, "quarantined").await;
    assert_eq!(
        (quarantined.state, quarantined.cause),
        (State::Running, None),
        "it was not alone any more, so it is not convicted"
    );
}

stores!(another_node_claims_what_is_due_while_a_job_runs_alone: memory, file, redis);
async fn another_node_claims_what_is_due_while_a_job_runs_alone() {
    let (script, pace) = (Script::hangs(), Pace { log: Log::new(), takes: MS });
    let dq = node_with_a_job_that_must_be_alone(&script, &pace).await;
    dq.advance(30 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due quarantined 0"]);
    let others = Pace { log: Log::new(), takes: MS };
    let other = dq.another(9, both(&Script::acks(), &others, 1)).await;
    dq.provider().add_many((0..5).map(|id| Neighbour { id })).after("1s").await.unwrap().all().unwrap();
    other.advance(10 * SECOND).await;
    assert_eq!((times(&others.log.take(), "begins").len(), pace.log.take().len()), (5, 0));
}

stores!(a_stopping_node_gives_back_a_quarantined_job_instead_of_its_on_exhausted: memory, file, redis);
async fn a_stopping_node_gives_back_a_quarantined_job_instead_of_its_on_exhausted() {
    let (script, pace) = (
        Script::new(|_, _| async {
            handler_takes(SECOND).await;
            Err("no".into())
        }),
        Pace { log: Log::new(), takes: SECOND },
    );
    let stuck = Script::hangs();
    let dq = start(|factory| stuck.on(factory, |topic| no_timeout(topic).max_crashes(2).retry("none"))).await;
    dq.provider().add_many(["a", "b"].map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let with = |factory| script.on(factory, |topic| no_timeout(topic).max_crashes(2).retry("none"));
    let next = dq.another(2, with).await;
    dq.kill();
    next.advance(22_500 * MS + 100 * MS).await;
    let last = next.another(3, both(&Script::acks(), &pace, 2)).await;
    next.shutdown(10 * SECOND).await;
    assert_eq!(script.log.take_without_times(), ["due a 0", "due b 0"], "their `on_exhausted` is owed");
    last.advance(SECOND).await;
    assert_eq!(stored_job(&last, "a").await.state, State::Dead);
}

#[tokio::test(start_paused = true)]
async fn health_names_the_quarantined_jobs_and_the_one_that_is_alone() {
    let (script, pace) = (Script::takes(SECOND), Pace { log: Log::new(), takes: SECOND });
    let dq = node_with_a_job_that_must_be_alone(&script, &pace).await;
    let mut shown = Vec::new();
    for id in 0..400 {
        // One neighbour or another runs all the time.
        if id < 300 && id % 8 == 0 {
            dq.provider().add(Neighbour { id }).await.unwrap();
        }
        dq.advance(100 * MS).await;
        let quarantine = dq.health().topics[1].quarantine.clone();
        let quarantine = quarantine.map(|is| (is.waiting, is.running, is.jobs, is.alone));
        if shown.last() != Some(&quarantine) {
            shown.push(quarantine);
        }
    }
    let quarantined = || "quarantined".to_owned();
    let runs = (0, 1, vec![quarantined()], Some(quarantined()));
    assert_eq!(shown, [None, Some((1, 0, vec![], None)), Some(runs), None]);
}

/// Lets a node die with these jobs, whose runs have begun, and puts them back with a crash each.
pub(crate) async fn crash_with(store: &Arc<dyn Store>, ids: impl Iterator<Item = String>) {
    let script = Script::hangs();
    let dq = Harness::start_on(store.clone(), 1, |factory| script.on(factory, no_timeout)).await;
    dq.provider().add_many(ids.map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let node = NodeId::new(dq.health().node);
    dq.kill();
    handler_takes(MINUTE).await; // the lease of the node expires
    let link = store.link(&work_key(), &NodeId::new("reclaimer"));
    let seen = link.step(Scan).await.unwrap().leases[0].1;
    let reclaim = Reclaim { node, seen, limit: 100, bytes: DEFAULT_BYTES, max_crashes: 1 };
    assert_eq!(link.step(reclaim).await.unwrap().left, 0);
}

stores!(quarantined_jobs_hold_up_the_next_claim_of_a_backlog_and_not_the_other_way_round: memory, file, redis);
async fn quarantined_jobs_hold_up_the_next_claim_of_a_backlog_and_not_the_other_way_round() {
    let (store, faults) = faulty_store();
    crash_with(&store, (0..12).map(|number| format!("crashed {number}"))).await;
    let adder = Harness::start_on(store.clone(), 2, ContextFactory::without_listeners).await;
    for thousand in 0..3 {
        let jobs = (0..1_000).map(|number| test_job(thousand * 1_000 + number));
        adder.provider().add_many(jobs).await.unwrap().all().unwrap();
    }
    let steps = Arc::new(Mutex::new(Vec::new()));
    let asked = steps.clone();
    faults.fail_when(move |step| {
        asked.lock().unwrap().push(step.to_owned());
        (step == "transfer").then_some(Fault::AnsweredAfter(10 * MS))
    });
    let script = Script::acks();
    let with = |topic: TopicOverrides| topic.max_crashes(1).concurrency(10_000);
    let dq = Harness::start_on(store, 3, |factory| script.on(factory, with)).await;
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take().len(), 3_012);
    let steps = steps.lock().unwrap();
    let claims_and_groups: Vec<_> =
        steps.iter().filter(|step| ["transfer", "isolate"].contains(&step.as_str())).collect();
    // Eight jobs run in the first group. The other four wait until one of those has ended.
    assert_eq!(claims_and_groups[..4], ["transfer", "isolate", "transfer", "isolate"], "{claims_and_groups:?}");
}
