//! What metrics, spans, links and a listener to the events cost, on the memory store and on Redis: each beside a node that reports to
//! nobody. All sides have both features; compare with a program that has neither by the bench `lifecycle`.
//!
//! `cargo bench -p dq --all-features --bench telemetry -- [--quick] [--only WHAT]`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "node/job.rs"]
mod job;
#[path = "node/listener.rs"]
mod listener;

use std::time::Duration;

use dq::provider::Event;
use dq_bench::{Arguments, Bench, Meter, Side, in_process};
use job::{factory, nothing};
use listener::{Tally, do_nothing};
use metrics_exporter_prometheus::PrometheusBuilder;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::Instrument;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// What is on, beside nothing.
const WHAT: [(&str, &str); 5] = [
    ("metrics", "metrics, for Prometheus"),
    ("spans", "spans, for a log at INFO"),
    ("unformatted", "spans that a subscriber at INFO keeps and does not format"),
    ("links", "links, a trace in ten recorded"),
    ("events", "events, to one listener in the process"),
];

/// Makes the whole process report it.
fn report(what: &str) {
    match what {
        "nothing" | "events" => {}
        "metrics" => {
            let buckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];
            let page = PrometheusBuilder::new().set_buckets(&buckets).unwrap().install_recorder().unwrap();
            // As a page that is read now and then does; otherwise the recorder keeps every value.
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(Duration::from_millis(500));
                    page.run_upkeep();
                }
            });
        }
        "spans" => tracing_subscriber::registry()
            .with(fmt::layer().with_writer(std::io::sink).with_filter(LevelFilter::INFO))
            .init(),
        "unformatted" => tracing_subscriber::registry().with(LevelFilter::INFO).init(),
        "links" => {
            let tracers = SdkTracerProvider::builder().with_sampler(Sampler::TraceIdRatioBased(0.1)).build();
            let layer = tracing_opentelemetry::layer().with_tracer(tracers.tracer("bench"));
            tracing_subscriber::registry().with(layer.with_filter(LevelFilter::INFO)).init();
        }
        other => panic!("{other} is nothing to report"),
    }
}

/// `--role WHAT URL JOBS`: 16 callers add the jobs, 100 at a time, and a node runs them. Returns the jobs a second, and the CPU time of this
/// process for each, µs.
async fn lives([what, url, jobs]: &[String; 3]) -> [f64; 2] {
    report(what);
    let jobs: usize = jobs.parse().unwrap();
    let tally = Tally::of(jobs);
    let dq = factory(url).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    dq.ready().await;
    if what == "events" {
        let mut events = dq.provider().events("nothing").unwrap();
        assert_eq!(events.next().await, Some(Event::Listening));
        tokio::spawn(async move { while events.next().await.is_some() {} });
    }
    let meter = Meter::start();
    for _ in 0..16 {
        let provider = dq.provider().clone();
        let call = async move {
            for _ in 0..jobs / 1_600 {
                provider.add_many((0..100).map(|_| nothing())).await.unwrap().all().unwrap();
            }
        };
        tokio::spawn(call.instrument(tracing::info_span!("request")));
    }
    tally.all().await;
    let cost = meter.end(jobs);
    dq.shutdown(Duration::from_secs(1)).await;
    [cost.rate, cost.client_us]
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    if let Ok(role) = <&[String; 3]>::try_from(arguments.role.as_slice()) {
        let [rate, us] = lives(role).await;
        return println!("{rate} {us}");
    }
    let jobs = arguments.scaled(32_000, 320_000);
    let wanted: Vec<_> = WHAT.into_iter().filter(|(_, says)| arguments.wants(says)).collect();
    let mut bench = Bench::start("telemetry", arguments, 2 * 2 * wanted.len());
    let server = bench.server().await;
    for round in bench.rounds() {
        for &(on, says) in &wanted {
            for (store, url) in [("Redis", server.url()), ("memory", "memory:".to_owned())] {
                let sides = [(Side::Bare, "nothing"), (Side::Dq, on)];
                for place in 0..2 {
                    let (side, what) = sides[(place + round) % 2];
                    bench.step(format!("{store}, {what}"));
                    server.empty().await;
                    let meter = Meter::on(&server).await;
                    let [rate, us] = in_process(&[&what, &url, &jobs]);
                    let cost = meter.end_on(&server, jobs).await;
                    bench.record(side, &format!("{store}, {says}: client"), "µs/job", us);
                    if store == "Redis" {
                        bench.record(side, &format!("{store}, {says}: server"), "µs/job", cost.redis_us);
                    }
                    bench.record(side, &format!("{store}, {says}: rate"), "jobs/s", rate);
                }
            }
        }
    }
    bench.note(format!("{jobs} jobs, 16 callers with 100 each; `bare` is the same node with nothing on"));
    bench.finish();
}
