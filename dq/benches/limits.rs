//! What the limits of a topic cost and give on Redis: the claims of a rate, how soon a freed slot is taken, what a topic that is shut
//! costs while it waits, and how late the jobs of groups start beside a group that has many overdue ones.
//!
//! `cargo bench -p dq --bench limits -- [--quick] [--only rate|slot|shut|groups]`

#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code, reason = "these jobs have settings of their own")]
#[path = "node/job.rs"]
mod job;
#[macro_use]
#[path = "node/ten_topics.rs"]
mod ten_topics;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq::config::TopicOverrides;
use dq::prelude::*;
use dq_bench::{Arguments, Bench, Lateness, Meter, Server, Side};
use job::{by_thousands, factory};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work {
    #[job(id)]
    id: String,
    fails: bool,
    rejoins: bool,
}

/// When runs were claimed, by the store's clock in µs, and when they began and ended, by that of the process.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    claims: Vec<u64>,
    runs: Vec<(Instant, Instant)>,
    known: HashSet<String>,
}

#[delay_listener(register = false, retry = "1s x 3")]
async fn work(job: Job<Work>, channel: Channel, seen: &Seen) -> Result<Decided, JobError> {
    let begin = Instant::now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut log = seen.0.lock().unwrap();
    log.claims.push(job.fence().0);
    log.runs.push((begin, Instant::now()));
    let is_first = log.known.insert(job.id.clone());
    match (is_first, job.fails, job.rejoins) {
        (true, true, _) => Err("again".into()),
        (true, _, true) => Ok(channel.rejoin_after("1s")),
        _ => Ok(channel.ack()),
    }
}

async fn node(server: &Server, seen: &Seen, set: impl FnOnce(TopicOverrides) -> TopicOverrides) -> Context {
    let factory = factory(server.url()).listener::<work>().provide(seen.clone());
    let dq = factory.topic("work", set).start().await.unwrap();
    dq.ready().await;
    dq
}

/// Adds so many jobs that are due: each third fails once, and each third rejoins once.
async fn fill(dq: &Context, jobs: u64) {
    let job = |n: u64| Work { id: n.to_string(), fails: n.is_multiple_of(3), rejoins: n % 3 == 1 };
    by_thousands(jobs, |part| dq.provider().add_many(part.map(job))).await;
}

/// Two nodes with a rate of 100 a second and enough due jobs.
async fn rate(bench: &mut Bench, server: &Server, seconds: u64) {
    server.empty().await;
    let seen = Seen::default();
    let hundred = |topic: TopicOverrides| topic.rate("100/s");
    let (one, two) = (node(server, &seen, hundred).await, node(server, &seen, hundred).await);
    fill(&one, 150 * seconds).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let meter = Meter::on(server).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let cost = meter.end_on(server, 100 * seconds as usize).await;
    one.shutdown(Duration::from_secs(5)).await;
    two.shutdown(Duration::from_secs(5)).await;
    let mut claims = std::mem::take(&mut seen.0.lock().unwrap().claims);
    claims.sort_unstable();
    let within = |from: usize| claims[from..].iter().take_while(|at| **at < claims[from] + 1_000_000).count();
    let most = (0..claims.len()).map(within).max().unwrap_or_default();
    let took = (claims[claims.len() - 1] - claims[0]) as f64 / 1e6;
    bench.record(Side::Dq, "rate 100/s, most claims in a second", "claims", most as f64);
    bench.record(Side::Dq, "rate 100/s, of what it allows", "%", claims.len() as f64 / took);
    bench.record(Side::Dq, "rate 100/s, commands", "per job", cost.commands);
}

/// Two nodes that share one slot: from the end of a run to the begin of the next.
async fn slot(bench: &mut Bench, server: &Server, jobs: usize) {
    server.empty().await;
    let seen = Seen::default();
    let one_slot = |topic: TopicOverrides| topic.cluster_concurrency(1);
    let (one, two) = (node(server, &seen, one_slot).await, node(server, &seen, one_slot).await);
    let job = |n: u64| Work { id: n.to_string(), fails: false, rejoins: false };
    by_thousands(jobs as u64, |part| one.provider().add_many(part.map(job))).await;
    while seen.0.lock().unwrap().runs.len() < jobs {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let runs = std::mem::take(&mut seen.0.lock().unwrap().runs);
    let mut gaps: Vec<_> =
        runs.windows(2).map(|runs| runs[1].0.duration_since(runs[0].1).as_secs_f64() * 1e3).collect();
    gaps.sort_by(f64::total_cmp);
    bench.record(Side::Dq, "freed slot to next handler, p50", "ms", gaps[gaps.len() / 2]);
    bench.record(Side::Dq, "freed slot to next handler, p99", "ms", gaps[gaps.len() * 99 / 100]);
    one.shutdown(Duration::from_secs(5)).await;
    two.shutdown(Duration::from_secs(5)).await;
}

ten_topics!((register = false, cluster_concurrency = 1, timeout = "1h") { std::future::pending().await });

/// A node holds the one slot of each of ten topics, and a second one waits: what both cost with so many due jobs in all.
async fn shut(bench: &mut Bench, server: &Server, due: usize, seconds: u64) {
    server.empty().await;
    let holder = ten_topics(factory(server.url())).start().await.unwrap();
    holder.ready().await;
    for topic in TOPICS {
        let topic = holder.provider().topic(topic).unwrap();
        let running = topic.add_many_json([serde_json::Value::Null]).await.unwrap();
        assert!(running.iter().all(Result::is_ok));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (topic, _) in TOPICS.iter().zip(0..if due > 0 { 10 } else { 0 }) {
        let topic = holder.provider().topic(topic).unwrap();
        for _ in 0..due / 10_000 {
            let added = topic.add_many_json((0..1_000).map(|_| serde_json::Value::Null)).await.unwrap();
            assert!(added.iter().all(Result::is_ok));
        }
    }
    // The node whose handlers run renews its leases; what a node costs that only waits is what comes on top.
    let alone = commands(server, seconds).await;
    let waiting = ten_topics(factory(server.url())).start().await.unwrap();
    waiting.ready().await;
    let both = commands(server, seconds).await;
    let name = format!("ten topics that are full, {due} due, commands of a node that waits");
    bench.record(Side::Dq, &name, "per second", both - alone);
    waiting.shutdown(Duration::from_millis(10)).await;
    holder.shutdown(Duration::from_millis(10)).await;
}

/// How many commands the server takes a second.
async fn commands(server: &Server, seconds: u64) -> f64 {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let meter = Meter::on(server).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    meter.end_on(server, seconds as usize).await.commands
}

/// A customer has a group, and adds each second.
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "sync", group = "customer-{customer}")]
struct Sync {
    customer: usize,
}

/// The group with many overdue jobs.
const BUSY: usize = 0;
const CUSTOMERS: usize = 1_000;

static RUNS: AtomicUsize = AtomicUsize::new(0);

#[delay_listener(register = false, group_concurrency = 1, concurrency = 8)]
async fn sync(job: Job<Sync>, lateness: &Lateness) -> Result<(), JobError> {
    RUNS.fetch_add(1, Relaxed);
    if job.customer != BUSY {
        lateness.start(job.due());
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    Ok(())
}

/// Two nodes and 1,000 groups with 500 jobs a second in all, beside a group with so many overdue jobs.
async fn groups(bench: &mut Bench, server: &Server, overdue: usize, seconds: usize) {
    server.empty().await;
    let jobs = 500 * seconds;
    let lateness = Lateness::of(jobs);
    let adder = factory(server.url()).without_listeners().start().await.unwrap();
    by_thousands(overdue as u64, |part| adder.provider().add_many(part.map(|_| Sync { customer: BUSY }))).await;
    let node = || factory(server.url()).listener::<sync>().provide(lateness.clone());
    let (one, two) = (node().start().await.unwrap(), node().start().await.unwrap());
    one.ready().await;
    two.ready().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.watch_slow_scripts().await;
    let (meter, start, before) = (Meter::on(server).await, Instant::now(), RUNS.load(Relaxed));
    for n in 0..jobs {
        let at = start + Duration::from_millis(2) * n as u32;
        tokio::time::sleep_until(at.into()).await;
        adder.provider().add(Sync { customer: 1 + n % (CUSTOMERS - 1) }).await.unwrap();
    }
    let late = lateness.all().await;
    let cost = meter.end_on(server, RUNS.load(Relaxed) - before).await;
    let beside = format!("groups beside {overdue} overdue jobs of one");
    bench.record(Side::Dq, &format!("{beside}, p50 of the others"), "ms", late.value_at_quantile(0.5) as f64 / 1e3);
    bench.record(Side::Dq, &format!("{beside}, p99 of the others"), "ms", late.value_at_quantile(0.99) as f64 / 1e3);
    bench.record(Side::Dq, &format!("{beside}, longest script"), "ms", server.longest_script().await / 1e3);
    bench.record(Side::Dq, &format!("{beside}, calls within scripts"), "per run", cost.calls);
    bench.record(Side::Dq, &format!("{beside}, commands"), "per run", cost.commands);
    one.shutdown(Duration::from_secs(5)).await;
    two.shutdown(Duration::from_secs(5)).await;
    adder.shutdown(Duration::from_secs(5)).await;
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let (seconds, jobs, due) =
        (arguments.scaled(10, 60), arguments.scaled(300, 2_000), arguments.scaled(100_000, 1_000_000));
    let wants = ["rate", "slot", "shut", "groups"].map(|name| arguments.wants(name));
    let mut bench = Bench::start("limits", arguments, 6);
    let server = bench.server().await;
    for _ in bench.rounds() {
        if wants[0] {
            bench.step("rate");
            rate(&mut bench, &server, seconds as u64).await;
        }
        if wants[1] {
            bench.step("slot");
            slot(&mut bench, &server, jobs).await;
        }
        if wants[2] {
            for due in [0, due] {
                bench.step(format!("shut, {due} due"));
                shut(&mut bench, &server, due, seconds as u64).await;
            }
        }
        if wants[3] {
            for overdue in [0, due] {
                bench.step(format!("groups, {overdue} overdue"));
                groups(&mut bench, &server, overdue, seconds).await;
            }
        }
    }
    bench.finish();
}
