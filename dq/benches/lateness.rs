//! How late jobs start on Redis, beside a bare loop that claims, starts a task for each job, and sleeps with tokio's timer.
//! A process of its own adds the jobs, each due a second after its add.
//!
//! `cargo bench -p dq --bench lateness -- [--quick] [--svg FILE]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use dq::prelude::*;
use dq_bench::bare::{self, paced};
use dq_bench::curve::{Curve, draw};
use dq_bench::{Arguments, Bench, Lateness, Meter, PAYLOAD, Server, Side, lateness};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "probe", delay = "1s")]
struct Probe {
    payload: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "flood", delay = "1s")]
struct Flood {
    payload: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "busy")]
struct Busy;

#[derive(Debug, Clone)]
struct FloodLateness(Lateness);

#[delay_listener(register = false)]
async fn probe(job: Job<Probe>, lateness: &Lateness) -> Result<(), JobError> {
    lateness.start(job.due());
    Ok(())
}

#[delay_listener(register = false)]
async fn flood(job: Job<Flood>, lateness: &FloodLateness) -> Result<(), JobError> {
    lateness.0.start(job.due());
    Ok(())
}

#[delay_listener(register = false, timeout = "10m")]
async fn busy(_job: Job<Busy>, stop: &CancellationToken) -> Result<(), JobError> {
    spin(stop).await;
    Ok(())
}

/// Computes for 100 µs, yields, and so on.
async fn spin(stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(100) {
            std::hint::spin_loop();
        }
        tokio::task::yield_now().await;
    }
}

/// One figure: the rate of the probes, and what else the node does.
#[derive(Clone, Copy)]
struct Line {
    name: &'static str,
    rate: usize,
    flood: usize,
    busy: bool,
}

const LINES: [Line; 4] = [
    Line { name: "100 a second", rate: 100, flood: 0, busy: false },
    Line { name: "1,000 a second", rate: 1_000, flood: 0, busy: false },
    Line { name: "100 beside 30,000 a second", rate: 100, flood: 30_000, busy: false },
    Line { name: "100 beside busy handlers", rate: 100, flood: 0, busy: true },
];

fn factory(url: &str) -> ContextFactory {
    ContextFactory::new("bench").store(url).without_inventory().variables([("", ""); 0])
}

/// The process that adds: `--role SIDE URL TOPIC RATE SECONDS`. It prints how many requests that took.
async fn add(words: &[String]) {
    let [side, url, topic, rate, seconds] = words else { panic!("a role has five words") };
    let (rate, seconds) = (rate.parse().unwrap(), seconds.parse().unwrap());
    if side == "bare" {
        println!("{}", bare::trickle(url, topic, rate, seconds).await);
        return;
    }
    let dq = factory(url).without_listeners().start().await.unwrap();
    let topic = dq.provider().topic(topic).unwrap();
    let payload: serde_json::Value = serde_json::from_str(PAYLOAD).unwrap();
    let calls = paced(rate, seconds, async |_, count| {
        let added = topic.add_many_json((0..count).map(|_| payload.clone())).after("1s").await.unwrap();
        assert!(added.iter().all(Result::is_ok));
    });
    println!("{}", calls.await);
    dq.shutdown(Duration::from_secs(1)).await;
}

/// Runs [`add`] in a process, and returns how many requests it sent.
async fn added(side: &str, server: &Server, topic: &str, rate: usize, seconds: usize) -> usize {
    if rate == 0 {
        return 0;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--role", side, &server.url(), topic, &rate.to_string(), &seconds.to_string()]);
    let output = command.stderr(Stdio::inherit()).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().expect("the process that adds prints a number")
}

/// What a measurement watches, and how it stops the busy handlers.
struct Watched {
    probes: Lateness,
    floods: Lateness,
    stop: CancellationToken,
}

/// What runs the jobs.
enum Node {
    Dq(Box<Context>),
    Bare(Vec<bare::Watched>),
}

impl Node {
    async fn start(side: Side, server: &Server, line: Line, watched: &Watched) -> Self {
        let url = server.url();
        if side == Side::Bare {
            let mut loops = vec![bare::watch(&url, "probe", watched.probes.clone()).await];
            if line.flood > 0 {
                loops.push(bare::watch(&url, "flood", watched.floods.clone()).await);
            }
            return Self::Bare(loops);
        }
        let mut factory = factory(&url).listener::<probe>().provide(watched.probes.clone());
        if line.flood > 0 {
            factory = factory.listener::<flood>().provide(FloodLateness(watched.floods.clone()));
        }
        if line.busy {
            factory = factory.listener::<busy>().provide(watched.stop.clone());
        }
        let dq = factory.start().await.unwrap();
        dq.ready().await;
        Self::Dq(Box::new(dq))
    }

    /// Keeps all threads of the runtime busy until `stop`.
    async fn keep_busy(&self, stop: &CancellationToken) {
        for _ in 0..2 * std::thread::available_parallelism().unwrap().get() {
            match self {
                Self::Dq(dq) => drop(dq.provider().add(Busy).await.unwrap()),
                Self::Bare(_) => {
                    let stop = stop.clone();
                    tokio::spawn(async move { spin(&stop).await });
                }
            }
        }
    }

    async fn end(self) {
        match self {
            Self::Dq(dq) => {
                dq.shutdown(Duration::from_secs(1)).await;
            }
            Self::Bare(loops) => drop(loops),
        }
    }
}

/// Measures one figure, and records it.
async fn measure(bench: &mut Bench, server: &Server, side: Side, line: Line, seconds: usize) -> Histogram<u64> {
    server.empty().await;
    let (jobs, flooding) = (line.rate * seconds, line.flood * seconds);
    let watched =
        Watched { probes: Lateness::of(jobs), floods: Lateness::of(flooding), stop: CancellationToken::new() };
    let node = Node::start(side, server, line, &watched).await;
    if line.busy {
        node.keep_busy(&watched.stop).await;
    }
    let meter = Meter::on(server).await;
    let of = if side == Side::Dq { "dq" } else { "bare" };
    let (requests, flood_requests) =
        tokio::join!(added(of, server, "probe", line.rate, seconds), added(of, server, "flood", line.flood, seconds));
    let found = watched.probes.all().await;
    if line.flood > 0 {
        let found = watched.floods.all().await;
        record(bench, side, &format!("{}, of the 30,000", line.name), &found);
    }
    let cost = meter.end_on(server, jobs + flooding).await;
    watched.stop.cancel();
    node.end().await;
    record(bench, side, line.name, &found);
    let jobs = (jobs + flooding) as f64;
    let of_node = cost.commands - (requests + flood_requests) as f64 / jobs;
    bench.record(side, &format!("{}: node's commands", line.name), "per job", of_node);
    bench.record(side, &format!("{}: Redis, adds included", line.name), "µs/job", cost.redis_us);
    if !line.busy {
        bench.record(side, &format!("{}: process", line.name), "µs/job", cost.client_us);
        bench.record(side, &format!("{}: context switches", line.name), "per job", cost.switches);
    }
    found
}

fn record(bench: &mut Bench, side: Side, name: &str, found: &Histogram<u64>) {
    for (what, value) in
        [("p50", found.value_at_percentile(50.0)), ("p99", found.value_at_percentile(99.0)), ("max", found.max())]
    {
        bench.record(side, &format!("{name}: {what}"), "ms", value as f64 / 1e3);
    }
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    if !arguments.role.is_empty() {
        return add(&arguments.role).await;
    }
    let seconds = arguments.scaled(4, 20);
    let lines: Vec<Line> = LINES.into_iter().filter(|line| arguments.wants(line.name)).collect();
    let mut bench = Bench::start("lateness", arguments, 2 * lines.len());
    let server = bench.server().await;
    let mut curves: Vec<Curve> = Vec::new();
    for _ in bench.rounds() {
        for &line in &lines {
            for side in [Side::Bare, Side::Dq] {
                bench.step(format!("{} {side:?}", line.name));
                let found = measure(&mut bench, &server, side, line, seconds).await;
                let is_dq = side == Side::Dq;
                let name = format!("{}, {}", if is_dq { "dq" } else { "bare" }, line.name);
                match curves.iter_mut().find(|curve| curve.name == name) {
                    Some(curve) => curve.values.add(&found).unwrap(),
                    None => {
                        let mut values = lateness::empty();
                        values.add(&found).unwrap();
                        curves.push(Curve { name, is_dq, values });
                    }
                }
            }
        }
    }
    if let Some(path) = &bench.arguments.svg {
        draw(path, &curves);
    }
    bench.finish();
}
