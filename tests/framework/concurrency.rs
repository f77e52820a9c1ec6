//! Permits: how many handlers run at once, and how many claimed jobs wait for a permit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::config::TopicOverrides;
use dq::inspect::NotRunReason;
use dq::prelude::*;
use dq::provider::Limit;
use dq_tests::Fault;

use crate::scripted_listener::{
    HOUR, MINUTE, MS, SECOND, Script, TestJob, default_settings, handler_takes, start, test_job,
};

/// The number of handlers that run, and its maximum.
#[derive(Default)]
pub(super) struct Meter {
    now: AtomicUsize,
    pub(super) most: AtomicUsize,
}

impl Meter {
    async fn run(&self, time: Duration) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
        handler_takes(time).await;
        self.now.fetch_sub(1, Relaxed);
    }
}

/// A script whose handlers take `time`, and their meter.
pub(super) fn metered(time: Duration) -> (Script, Arc<Meter>) {
    let meter = Arc::<Meter>::default();
    let of_handlers = meter.clone();
    let script = Script::new(move |_, channel| {
        let meter = of_handlers.clone();
        async move {
            meter.run(time).await;
            Ok(channel.ack())
        }
    });
    (script, meter)
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_handlers_than_permits() {
    let (script, meter) = metered(10 * MS);
    let dq = script.start(|topic| topic.concurrency(7)).await;
    dq.provider().add_many((0..500).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(MINUTE).await;
    assert_eq!((meter.most.load(Relaxed), script.log.take().len()), (7, 500));
}

#[tokio::test(start_paused = true)]
async fn a_slow_node_claims_no_more_than_it_can_start() {
    let (script, _) = metered(MINUTE);
    let dq = script.start(|topic| topic.concurrency(3).timeout("0s")).await;
    dq.provider().add_many((0..100).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(10 * MINUTE + SECOND).await;
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((counts.running, counts.delayed), (3, 67), "the node leaves what it cannot start to others");
    assert_eq!(dq.health().topics[0].waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_holds_no_more_waiting_jobs_than_end_within_fifty_milliseconds() {
    let (script, meter) = metered(10 * MS);
    let dq = script.start(|topic| topic.concurrency(4)).await;
    dq.provider().add_many((0..200).map(test_job)).await.unwrap().all().unwrap();
    let mut most = 0;
    for _ in 0..400 {
        dq.advance(MS).await;
        let health = &dq.health().topics[0];
        most = most.max(health.waiting);
        assert!(health.waiting <= 24, "{health:?}");
    }
    assert!(most > 0, "a fast topic claims ahead instead of waiting for the store");
    assert_eq!(meter.most.load(Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_claimed_ahead_goes_to_another_node_when_no_handler_returns() {
    let script = Script::new(|job, channel| async move {
        handler_takes(if job.id().as_str() == "50" { HOUR } else { MS }).await;
        Ok(channel.ack())
    });
    let dq = script.start(|topic| topic.concurrency(1).timeout("0s")).await;
    dq.provider().add_many((0..100).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(SECOND).await;
    let held = dq.health().topics[0].waiting;
    assert!(held > 0, "some wait behind the handler that does not return");
    let idle = Script::acks();
    let other = idle.beside(&dq, 2, |topic| topic.concurrency(1)).await;
    dq.advance(500 * MS).await;
    assert_eq!(dq.health().topics[0].waiting, held, "it may return soon");
    dq.advance(5 * SECOND).await;
    assert_eq!(dq.health().topics[0].waiting, 0);
    assert_eq!(script.log.take().len() + idle.log.take().len(), 100, "each ran once");
    let counts = other.counts::<TestJob>().await;
    assert_eq!((counts.running, counts.delayed), (1, 0), "only the handler that does not return holds a job");
    dq.provider().add(test_job("next")).await.unwrap();
    dq.advance(SECOND).await;
    assert_eq!((dq.health().topics[0].waiting, idle.log.take().len()), (0, 1));
}

stores!(every_node_gets_its_share_of_the_jobs: memory, file, redis);
async fn every_node_gets_its_share_of_the_jobs() {
    let (one, first) = metered(SECOND);
    let (two, second) = metered(SECOND);
    let dq = one.start(|topic| topic.concurrency(5)).await;
    let other = two.beside(&dq, 2, |topic| topic.concurrency(6)).await;
    dq.provider().add_many((0..100).map(test_job)).after(SECOND).await.unwrap().all().unwrap();
    dq.advance(12 * SECOND).await;
    let (ran, also_ran) = (one.log.take(), two.log.take());
    assert_eq!(ran.len() + also_ran.len(), 100, "each job on one of them");
    assert_eq!((first.most.load(Relaxed), second.most.load(Relaxed)), (5, 6), "both are busy");
    assert_eq!(other.counts::<TestJob>().await.delayed, 0);
}

stores!(all_nodes_together_run_no_more_than_cluster_concurrency_and_no_slot_stays_empty: memory, file, redis);
async fn all_nodes_together_run_no_more_than_cluster_concurrency_and_no_slot_stays_empty() {
    let (script, meter) = metered(10 * MS);
    let three = |topic: TopicOverrides| topic.concurrency(20).cluster_concurrency(3);
    let dq = script.start(three).await;
    let other = script.beside(&dq, 2, three).await;
    dq.provider().add_many((0..300).map(test_job)).await.unwrap().all().unwrap();
    dq.advance(500 * MS).await;
    let why = dq.provider().inspect().why("work", "299").await.unwrap();
    assert_eq!(why.reasons[0], NotRunReason::NoSlot { running: 3, limit: 3 });
    // A hundred rounds of three, each woken by the end of the one before it.
    dq.advance(1_000 * MS).await;
    assert_eq!((meter.most.load(Relaxed), script.log.take().len()), (3, 300));
    dq.provider().set_limit::<TestJob>(Limit::ClusterConcurrency(5)).by("anna").await.unwrap();
    dq.provider().add_many((300..600).map(test_job)).await.unwrap().all().unwrap();
    other.advance(MINUTE).await;
    assert_eq!((meter.most.load(Relaxed), script.log.take().len()), (5, 300));
    assert_eq!(dq.health().topics[0].limits[0].limit, Limit::ClusterConcurrency(5));
    let listed = dq.topic_settings("work").unwrap();
    assert_eq!(listed.get("cluster_concurrency").map(|listed| listed.value.as_str()), Some("5"));
    assert_eq!(dq.provider().topic_state::<TestJob>().await.unwrap().limits[0].by, "anna");
}

stores!(the_slots_of_a_dead_node_are_free_when_its_lease_is_over: memory, file, redis);
async fn the_slots_of_a_dead_node_are_free_when_its_lease_is_over() {
    let (stuck, script) = (Script::hangs(), Script::acks());
    let one = |topic: TopicOverrides| topic.cluster_concurrency(1).timeout("0s");
    let dq = stuck.start(one).await;
    dq.provider().add(test_job("first")).await.unwrap();
    dq.settle().await;
    let other = script.beside(&dq, 2, one).await;
    dq.provider().add(test_job("second")).await.unwrap();
    other.advance(MINUTE).await;
    assert_eq!(script.log.take(), [""; 0], "the only slot is taken");
    dq.kill();
    // A lease, and a watch of one and a half renewals.
    other.advance(23 * SECOND).await;
    assert_eq!(script.log.take().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_claims_no_more_than_it_can_start_where_slots_are_few() {
    let (script, _) = metered(10 * MS);
    let dq = script.start(|topic| topic.concurrency(4).cluster_concurrency(100)).await;
    dq.provider().add_many((0..400).map(test_job)).await.unwrap().all().unwrap();
    let mut most = 0;
    for _ in 0..50 {
        dq.advance(7 * MS).await;
        most = most.max(dq.counts::<TestJob>().await.running);
    }
    assert_eq!(most, 4, "a job that waits for a permit would hold a slot");
}

stores!(thousands_of_jobs_due_in_the_same_millisecond_all_run: memory, file, redis);
async fn thousands_of_jobs_due_in_the_same_millisecond_all_run() {
    let script = Script::acks();
    let dq = script.start(default_settings).await;
    let clock = dq.counts::<TestJob>().await.clock;
    for batch in 0..5 {
        let jobs = (0..1_000).map(|id| test_job(batch * 1_000 + id));
        dq.provider().add_many(jobs).at(clock.after(MINUTE)).await.unwrap().all().unwrap();
    }
    dq.advance(MINUTE).await;
    let ran = script.log.take();
    assert_eq!(ran.len(), 5_000);
    assert!(ran.iter().all(|line| line.starts_with("60s ")), "{:?}", ran.last());
}

#[derive(Debug, serde::Serialize, serde::Deserialize, DelayJob)]
#[job(topic = "other")]
struct Other {
    #[job(id)]
    id: usize,
}

#[derive(Debug, serde::Serialize, serde::Deserialize, DelayJob)]
#[job(topic = "rare")]
struct Rare {
    #[job(id)]
    id: usize,
}

/// The numbers of handlers that run, by topic.
#[derive(Clone, Default)]
struct Meters(Arc<[Meter; 3]>);

impl Meters {
    fn now(&self) -> [usize; 3] {
        [0, 1, 2].map(|topic| self.0[topic].now.load(Relaxed))
    }
}

#[delay_listener(register = false)]
async fn work(job: Job<TestJob>, meters: Meters) -> Result<(), JobError> {
    meters.0[0].run(SECOND + u32::from(job.id().as_str().ends_with('7')) * 100 * MS).await;
    Ok(())
}

#[delay_listener(register = false)]
async fn other(_job: Job<Other>, meters: Meters) -> Result<(), JobError> {
    meters.0[1].run(SECOND).await;
    Ok(())
}

#[delay_listener(register = false)]
async fn rare(_job: Job<Rare>, meters: Meters) -> Result<(), JobError> {
    meters.0[2].run(SECOND).await;
    Ok(())
}

async fn node_with_limit(limit: usize) -> (dq::testing::Harness, Meters) {
    let meters = Meters::default();
    let listeners = |factory: ContextFactory| factory.listener::<work>().listener::<other>().listener::<rare>();
    let dq = start(|factory| listeners(factory.provide(meters.clone())).node_concurrency(limit)).await;
    (dq, meters)
}

#[tokio::test(start_paused = true)]
async fn the_topics_of_a_node_share_its_permits_fairly_and_each_keeps_one() {
    let (dq, meters) = node_with_limit(11).await;
    dq.provider().add_many((0..500).map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    assert_eq!(meters.now(), [9, 0, 0], "a topic that is busy alone has all that the others need not keep");
    dq.provider().add(Rare { id: 0 }).await.unwrap();
    dq.settle().await;
    assert_eq!(meters.now(), [9, 0, 1], "a job of another topic starts at once");
    dq.provider().add_many((0..500).map(|id| Other { id })).await.unwrap().all().unwrap();
    for _ in 0..30 {
        dq.advance(500 * MS).await;
        assert!(meters.now().iter().sum::<usize>() <= 11, "{:?}", meters.now());
    }
    assert_eq!(meters.now(), [5, 5, 0], "two busy topics have equally many");
    dq.advance(10 * MINUTE).await;
    let acked: Vec<_> = dq.health().topics.iter().map(|topic| topic.counters.acked).collect();
    assert_eq!(acked, [500, 1, 500]);
}

#[tokio::test(start_paused = true)]
async fn with_fewer_permits_than_topics_each_topic_runs_one_handler() {
    let (dq, meters) = node_with_limit(1).await;
    dq.provider().add_many((0..5).map(test_job)).await.unwrap().all().unwrap();
    dq.provider().add_many((0..5).map(|id| Other { id })).await.unwrap().all().unwrap();
    dq.provider().add_many((0..5).map(|id| Rare { id })).await.unwrap().all().unwrap();
    dq.settle().await;
    assert_eq!(meters.now(), [1; 3]);
    dq.advance(MINUTE).await;
    assert_eq!(meters.0.each_ref().map(|meter| meter.most.load(Relaxed)), [1; 3]);
    let acked: Vec<_> = dq.health().topics.iter().map(|topic| topic.counters.acked).collect();
    assert_eq!(acked, [5; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_the_permits_of_a_node_cannot_start_is_left_to_other_nodes() {
    let (dq, meters) = node_with_limit(5).await;
    dq.provider().add_many((0..100).map(test_job)).await.unwrap().all().unwrap();
    dq.settle().await;
    let counts = dq.counts::<TestJob>().await;
    assert_eq!((meters.now(), counts.running, counts.delayed), ([3, 0, 0], 3, 97));
}

stores!(a_topic_has_one_transfer_in_flight_however_often_it_is_woken: memory, file, redis);
async fn a_topic_has_one_transfer_in_flight_however_often_it_is_woken() {
    let script = Script::acks();
    let (dq, faults) = script.on_faulty(default_settings).await;
    let slow = || faults.fail_only("transfer", Fault::AnsweredAfter(SECOND));
    slow();
    dq.provider().add(test_job("first")).await.unwrap();
    handler_takes(10 * MS).await;
    let before = faults.requests_for("transfer");
    for id in 0..50 {
        dq.provider().add(test_job(id)).await.unwrap();
        handler_takes(10 * MS).await;
    }
    assert_eq!(
        (before, faults.requests_for("transfer")),
        (before.max(1), before),
        "the answer of the first is not here"
    );
    faults.clear();
    dq.advance(MINUTE).await;
    assert_eq!(script.log.take().len(), 51);
}

/// The task of a connection writes what its topic asks, when it has its turn. The notes say how many jobs the node held by then.
#[tokio::test(start_paused = true)]
async fn a_transfer_is_written_before_the_claims_of_the_last_one_are_admitted() {
    let script = Script::takes(HOUR);
    let (dq, faults) = script.on_faulty(|topic| topic.concurrency(5_000)).await;
    dq.settle().await;
    let (probe, held) = (Arc::new(dq.probe()), Arc::new(Mutex::new(Vec::new())));
    let notes = held.clone();
    faults.fail_when(move |step| {
        if step == "transfer" {
            let (probe, notes) = (probe.clone(), notes.clone());
            tokio::spawn(async move { notes.lock().unwrap().push(probe.health().topics[0].held) });
        }
        None
    });
    for from in [0, 1_000, 2_000] {
        dq.provider().add_many((from..from + 1_000).map(test_job)).after(MINUTE).await.unwrap().all().unwrap();
    }
    held.lock().unwrap().clear();
    dq.advance(MINUTE).await;
    let held = held.lock().unwrap();
    // A transfer claims 300. The tenth goes out at the answer of the ninth, whose claims are not admitted yet.
    assert!(held.ends_with(&[1_800, 2_100, 2_400]), "{held:?}");
}
