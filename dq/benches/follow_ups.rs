//! How soon a follow-up runs on Redis: from the end of a run to the start of the job that follows it, in chains of three jobs over three
//! topics, on two nodes. And what a large job set costs.
//!
//! `cargo bench -p dq --bench follow_ups -- [--quick] [--only chains|sets]`

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dq::prelude::*;
use dq_bench::bare::paced;
use dq_bench::{Arguments, Bench, Meter, Server, Side};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A job of a chain, with the time at which the run before it ended, in µs since the log began.
macro_rules! links {
    ($($link:ident $topic:literal),+) => {
        $(
            #[derive(Debug, Serialize, Deserialize, DelayJob)]
            #[job(topic = $topic)]
            struct $link { ended: u64 }
        )+
    };
}

links!(First "first", Second "second", Third "third");

/// From the end of each run to the start of the next one, in µs.
#[derive(Debug, Clone)]
struct Lags(Arc<(Instant, Mutex<Histogram<u64>>)>);

impl Lags {
    fn new() -> Self {
        Self(Arc::new((Instant::now(), Mutex::new(Histogram::new(3).unwrap()))))
    }

    fn now(&self) -> u64 {
        self.0.0.elapsed().as_micros() as u64
    }

    fn started(&self, ended: u64) {
        self.0.1.lock().unwrap().record(self.now() - ended).unwrap();
    }

    fn count(&self) -> usize {
        self.0.1.lock().unwrap().len() as usize
    }
}

#[delay_listener(register = false)]
async fn first(_job: Job<First>, channel: Channel, lags: &Lags) -> Result<Decided, JobError> {
    let ended = lags.now();
    let decided = channel.ack().then(|next| {
        next.add(Second { ended });
    });
    Ok(decided?)
}

#[delay_listener(register = false)]
async fn second(job: Job<Second>, channel: Channel, lags: &Lags) -> Result<Decided, JobError> {
    lags.started(job.ended);
    let ended = lags.now();
    let decided = channel.ack().then(|next| {
        next.add(Third { ended });
    });
    Ok(decided?)
}

#[delay_listener(register = false)]
async fn third(job: Job<Third>, lags: &Lags) -> Result<(), JobError> {
    lags.started(job.ended);
    Ok(())
}

async fn node(server: &Server, lags: &Lags) -> Context {
    let factory = ContextFactory::new("bench").store(server.url()).without_inventory().variables([("", ""); 0]);
    let listeners = factory.listener::<first>().listener::<second>().listener::<third>();
    let dq = listeners.provide(lags.clone()).start().await.unwrap();
    dq.ready().await;
    dq
}

/// So many chains a second, for so long.
async fn chains(bench: &mut Bench, server: &Server, rate: usize, seconds: usize) {
    server.empty().await;
    let lags = Lags::new();
    let (one, two) = (node(server, &lags).await, node(server, &lags).await);
    let meter = Meter::on(server).await;
    paced(rate, seconds, async |_, count| {
        let jobs = (0..count).map(|_| First { ended: 0 });
        assert!(one.provider().add_many(jobs).await.unwrap().iter().all(Result::is_ok));
    })
    .await;
    while lags.count() < 2 * rate * seconds {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let cost = meter.end_on(server, 3 * rate * seconds).await;
    let name = format!("{rate} chains of three jobs a second");
    for (quantile, figure) in [(0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
        let lag = lags.0.1.lock().unwrap().value_at_quantile(quantile) as f64 / 1e3;
        bench.record(Side::Dq, &format!("{name}, end of a run to the next one, {figure}"), "ms", lag);
    }
    bench.record(Side::Dq, &format!("{name}, commands"), "per job", cost.commands);
    one.shutdown(Duration::from_secs(5)).await;
    two.shutdown(Duration::from_secs(5)).await;
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "member")]
struct Member {
    #[job(id)]
    n: usize,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "last")]
struct Last {
    #[job(id)]
    n: usize,
}

/// How many members were acked, of each set that has ended.
#[derive(Debug, Clone)]
struct Ended(tokio::sync::watch::Sender<Vec<usize>>);

#[delay_listener(register = false, concurrency = 256)]
async fn member(_job: Job<Member>) -> Result<(), JobError> {
    Ok(())
}

#[delay_listener(register = false)]
async fn last(job: Job<Last>, ended: &Ended) -> Result<(), JobError> {
    let header = |name| job.header(name).and_then(|text| text.parse::<usize>().ok()).unwrap();
    ended.0.send_modify(|counts| counts.push(header("dq-set-acked")));
    Ok(())
}

/// A set of so many members, from the first add to its last job.
async fn set(bench: &mut Bench, server: &Server, members: usize) {
    server.empty().await;
    let (sender, mut counts) = tokio::sync::watch::channel(Vec::new());
    let factory = ContextFactory::new("bench").store(server.url()).without_inventory().variables([("", ""); 0]);
    let dq = factory.listener::<member>().listener::<last>().provide(Ended(sender)).start().await.unwrap();
    dq.ready().await;
    server.watch_slow_scripts().await;
    let meter = Meter::on(server).await;
    let start = Instant::now();
    let set = dq.provider().job_set::<Last>("import-7");
    let all: Vec<_> = (0..members).collect();
    for part in all.chunks(1_000) {
        set.add_many(part.iter().map(|n| Member { n: *n })).await.unwrap();
    }
    let added = start.elapsed();
    set.then(Last { n: 7 }).await.unwrap();
    counts.wait_for(|counts| !counts.is_empty()).await.unwrap();
    let took = start.elapsed();
    let cost = meter.end_on(server, members).await;
    assert_eq!(*counts.borrow(), [members]);
    let name = format!("a job set of {members} members");
    bench.record(Side::Dq, &format!("{name}, adds"), "members/s", members as f64 / added.as_secs_f64());
    bench.record(Side::Dq, &format!("{name}, to its last job"), "members/s", members as f64 / took.as_secs_f64());
    bench.record(Side::Dq, &format!("{name}, longest script"), "ms", server.longest_script().await / 1e3);
    bench.record(Side::Dq, &format!("{name}, commands"), "per member", cost.commands);
    dq.shutdown(Duration::from_secs(5)).await;
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let (seconds, members) = (arguments.scaled(10, 60), arguments.scaled(100_000, 1_000_000));
    let wants = ["chains", "sets"].map(|name| arguments.wants(name));
    let mut bench = Bench::start("follow_ups", arguments, 3);
    let server = bench.server().await;
    for _ in bench.rounds() {
        for rate in [100, 1_000] {
            if wants[0] {
                bench.step(format!("{rate} chains a second"));
                chains(&mut bench, &server, rate, seconds).await;
            }
        }
        if wants[1] {
            bench.step(format!("a set of {members}"));
            set(&mut bench, &server, members).await;
        }
    }
    bench.finish();
}
