//! A dashboard over a store with many jobs, a running node, and texts that try to break out, served on a free port.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use dq::prelude::*;
use dq::provider::TopicProvider;
use dq_dashboard::{Access, Dashboard, serve};
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;

use super::visitor::TOKEN;

/// Runs as script if it is not escaped.
pub(crate) const HOSTILE: &str =
    "</code></pre></script><script>window.broken=1</script><img src=x onerror=window.broken=1>";

macro_rules! jobs {
    ($($name:ident $topic:literal),+) => {$(
        #[derive(Debug, Serialize, Deserialize, DelayJob)]
        #[job(topic = $topic)]
        struct $name { n: u64 }
    )+};
}

jobs!(Charge "charge-card", Welcome "welcome-mail", Review "fraud-review", Export "export-report", CloseOrder "close-order", Wait "waits");

#[delay_listener(
    topic = "charge-card",
    retry = "none",
    concurrency = 64,
    history_max = 20,
    history_retention = "1h",
    statistics = true
)]
async fn charge(job: Job<Charge>) -> Result<(), JobError> {
    let text = if job.n == 0 { HOSTILE } else { "the bank answered 503: try again later" };
    Err(text.into())
}

#[delay_listener(topic = "welcome-mail", concurrency = 64)]
async fn welcome(job: Job<Welcome>, channel: Channel) -> Result<Decided, JobError> {
    Ok(if job.id().as_str() == "kept" { channel.ack_with(&job.n)? } else { channel.ack() })
}

#[delay_listener(topic = "close-order", concurrency = 64)]
async fn close(job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
    Ok(match job.id().as_str() {
        "leads" => channel.ack().then(|next| {
            next.add(Wait { n: job.n });
        })?,
        _ => channel.ack(),
    })
}

#[delay_listener(topic = "fraud-review", group_concurrency = 1, group_on_blocked = "park: wait")]
async fn review(_job: Job<Review>, channel: Channel) -> Result<Decided, JobError> {
    Ok(channel.park())
}

#[delay_listener(topic = "export-report", timeout = "none", concurrency = 4, group_concurrency = 1, history_max = 20)]
async fn export(_job: Job<Export>, channel: Channel) -> Result<Decided, JobError> {
    channel.progress(1, 3, "page 1");
    channel.checkpoint(&1).await?;
    std::future::pending().await
}

/// The parts that have to live as long as the test.
pub(crate) struct Stage {
    _server: RedisServer,
    pub(crate) provider: Provider,
    pub(crate) address: SocketAddr,
    _node: Context,
}

impl Stage {
    pub(crate) async fn with_jobs(waiting: usize) -> Self {
        let server = RedisServer::start();
        let factory = ContextFactory::new("shop").store(server.url()).shutdown_grace("10ms");
        let node = factory.start().await.unwrap();
        let provider = node.provider().clone();
        fill(&provider, waiting).await;
        let redact = |_: &str, payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
        let dashboard = Dashboard::new(provider.clone(), Access::token("ann", TOKEN))
            .settings_of(&node)
            .show_payloads(redact)
            .hosts(["jobs.example"]);
        let app = axum::Router::new().merge(dashboard.at("/admin/dq").unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, app, std::future::pending()));
        Self { _server: server, provider, address, _node: node }
    }

    pub(crate) fn page(&self, path: &str) -> String {
        format!("http://{}/admin/dq{path}", self.address)
    }
}

/// Adds `many` jobs at once, all due at a moment.
async fn add(topic: &TopicProvider, many: usize, after: Duration) {
    for first in (0..many).step_by(1_000) {
        let jobs: Vec<_> = (first..many.min(first + 1_000)).map(|n| json!({ "n": n + 1, "customer": "ada" })).collect();
        topic.add_many_json(jobs).after(after).await.unwrap().all().unwrap();
    }
}

/// How many jobs fall due in a minute, in parts of all.
type Wave = fn(usize) -> f64;

async fn fill(provider: &Provider, waiting: usize) {
    let topic = |name: &str| provider.topic(name).unwrap();
    // Waves: orders that close after half an hour, mails after the hour, a night of reminders.
    let waves: [(&str, usize, Wave); 4] = [
        ("close-order", 50, |n| 1.2 + (n as f64 / 7.0).sin() + n as f64 / 60.0),
        ("welcome-mail", 25, |n| 1.1 + (n as f64 / 4.0).cos()),
        ("meeting-reminder", 15, |n| if n % 15 == 0 { 6.0 } else { 0.3 }),
        ("session-expiry", 10, |n| 0.6 + n as f64 / 50.0),
    ];
    for (name, percent, wave) in waves {
        let all = waiting * percent / 100;
        let soon = all / 2;
        let sum: f64 = (1..60).map(wave).sum();
        for minute in 1..60 {
            let jobs = (soon as f64 * wave(minute) / sum) as usize;
            add(&topic(name), jobs, Duration::from_secs(minute as u64 * 60 + 20)).await;
        }
        for hour in 1..30 {
            let jobs = (all - soon) / 29;
            add(&topic(name), jobs, Duration::from_secs(3_600 * hour * hour)).await;
        }
    }
    add(&topic("charge-card"), 240, Duration::ZERO).await;
    topic("charge-card")
        .add_json(json!({ "n": 0, "note": HOSTILE }))
        .id(HOSTILE)
        .header("note", HOSTILE)
        .await
        .unwrap();
    add(&topic("fraud-review"), 12, Duration::ZERO).await;
    add(&topic("export-report"), 9, Duration::ZERO).await;
    add(&topic("newsletter"), 3_100, Duration::from_secs(600)).await;
    topic("newsletter").pause().reason("the mail provider throttles us").by("ada").await.unwrap();
    let sent = topic("newsletter-sent");
    for n in 0..3 {
        let letter = topic("newsletter").add_json(json!({ "n": n })).id(format!("november-{n}")).after("10m");
        letter.member_of(&sent, "november").await.unwrap();
    }
    topic("newsletter").add_json(json!(1)).id(HOSTILE).after("10m").member_of(&sent, HOSTILE).await.unwrap();
    let late = SystemTime::now() - Duration::from_secs(187);
    let jobs: Vec<_> = (0..42).map(|n| json!({ "n": n })).collect();
    topic("legacy-import").add_many_json(jobs).at(late).await.unwrap().all().unwrap();
    topic("nightly-report").add_schedule_json("every-hour", json!({ "n": 1 })).every("1h").await.unwrap();
    settled(provider).await;
}

/// Waits until the node has done what is due.
async fn settled(provider: &Provider) {
    loop {
        let dead = provider.topic("charge-card").unwrap().counts().await.unwrap().dead;
        let unacked = provider.topic("fraud-review").unwrap().counts().await.unwrap().unacked;
        if dead == 241 && unacked == 12 {
            return;
        }
        tokio::task::yield_now().await;
    }
}
