//! The metrics of dq for Prometheus: a page beside a node, with alert rules and a dashboard to load.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use axum::Router;
use axum::routing::get;
use clap::Parser;
use dq::prelude::*;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

const MAILS: u32 = 20;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "mail", delay = "50ms")]
struct SendMail {
    #[job(id)]
    number: u32,
}

#[derive(Debug, Default)]
struct Sent(AtomicU32);

/// The first attempt of the mail 13 fails.
#[delay_listener(timeout = "5s", retry = "10ms")]
async fn send_mail(job: Job<SendMail>, sent: &Arc<Sent>) -> Result<(), JobError> {
    if job.number == 13 && job.attempt() == 0 {
        return Err("the mail server is busy".into());
    }
    sent.0.fetch_add(1, Relaxed);
    Ok(())
}

/// Runs jobs, and prints a few of the metrics that Prometheus would read.
///
/// The variable DQ_STORE names the store. Without it, the jobs are in memory.
#[derive(Parser)]
struct Arguments {
    /// Where the page is; it stays until Ctrl-C if you name a port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Seconds, from a millisecond to a minute.
const BUCKETS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments { listen } = Arguments::parse();
    // The recorder comes before the node, which looks for it once. Without buckets, the exporter would keep every value.
    let every = Matcher::Suffix("_seconds".into());
    let page = PrometheusBuilder::new().set_buckets_for_metric(every, BUCKETS)?.install_recorder()?;

    let sent = Arc::new(Sent::default());
    let dq = ContextFactory::new("office").store("memory:").provide(sent.clone()).start().await?;
    let server = TcpListener::bind(listen).await?;
    let address = server.local_addr()?;
    eprintln!("the metrics are at http://{address}/metrics");
    let (jobs, probe) = (dq.provider().clone(), dq.probe());
    let render = async move || render(&page, &jobs, &probe.health()).await;
    tokio::spawn(axum::serve(server, Router::new().route("/metrics", get(render))).into_future());

    dq.provider().add_many((0..MAILS).map(|number| SendMail { number })).await?.all()?;
    while sent.0.load(Relaxed) < MAILS || dq.health().topics[0].held > 0 {
        sleep(delay!("10ms")).await;
    }
    let text = read(address).await?;
    let wanted =
        ["dq_jobs_added_total", "dq_jobs_claimed_total", "dq_jobs_failed_total", "dq_jobs_settled_total", "dq_jobs{"];
    let mut shown: Vec<_> = text.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name))).collect();
    shown.retain(|line| !line.ends_with(" 0"));
    shown.sort_unstable();
    shown.iter().for_each(|line| println!("{line}"));
    if listen.port() != 0 {
        dq.run_until_signal().await?;
        return Ok(ExitCode::SUCCESS);
    }
    dq.shutdown(delay!("5s")).await;
    let is_right = shown.iter().any(|line| line.contains("claimed") && line.ends_with(" 21"));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What Prometheus reads: how many jobs are in each state is asked of the store now, everything else was counted.
async fn render(page: &PrometheusHandle, jobs: &Provider, health: &dq::context::Health) -> String {
    if let Err(error) = jobs.measure_depths(health.topics.iter().map(|topic| &topic.topic)).await {
        eprintln!("the depths are old: {error}"); // the rest of the page is right
    }
    page.run_upkeep();
    page.render()
}

/// Reads the page, as Prometheus does.
async fn read(address: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}
