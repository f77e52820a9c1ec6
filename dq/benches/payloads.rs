//! What the scripts cost when payloads are large: the steps of a life one by one, µs of a job in scripts on Redis, beside the bare
//! client with the same payloads. And how long another client waits while large jobs drain.
//!
//! `cargo bench -p dq --bench payloads -- [--quick]`

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use dq::job::{AppName, Cause, Codec, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName};
use dq::store::redis::RedisStore;
use dq::store::step::{Change, Claim, DEFAULT_BYTES, Outcome, Reconcile, Sequenced, Settle, Transfer};
use dq::store::{Link, NewJob, Numbered, Producer, Store};
use dq_bench::bare::Scripts;
use dq_bench::server::ask;
use dq_bench::{Arguments, Bench, Server, Side, lateness};

const LEASE: Duration = Duration::from_secs(60);
/// KB of a payload, and how many jobs a step has.
const SIZES: [(usize, usize); 3] = [(1, 512), (32, 256), (256, 64)];

/// What a step costs in scripts, µs.
async fn script_us(server: &Server, step: impl Future<Output = ()>) -> f64 {
    let before = server.spent().await.script_us;
    step.await;
    server.spent().await.script_us - before
}

struct Steps {
    link: Arc<dyn Link>,
    producer: Arc<dyn Producer>,
    last_seen: Sequence,
    number: u64,
}

impl Steps {
    async fn on(server: &Server) -> Self {
        let key = TopicKey { app: AppName::new("bench").unwrap(), topic: TopicName::new("t").unwrap() };
        let store = RedisStore::new(&server.url()).unwrap();
        let (link, producer) = (store.link(&key, &NodeId::new("n")), store.producer(&key, &ProducerId::new("p")));
        let first = link.step(Reconcile { last_seen: Sequence(0), after: None, limit: 1 }).await.unwrap();
        let Sequenced::Done(first) = first else { panic!("a first page needs no number") };
        Self { link, producer, last_seen: first.lease_status.sequence, number: 0 }
    }

    /// Adds jobs one by one.
    async fn add(&mut self, jobs: usize, record: &Record) {
        for _ in 0..jobs {
            self.number += 1;
            let id = JobId::generated(self.number, 7);
            let job = NewJob { generated: true, ..NewJob::new(id, record.clone()) };
            self.producer.add(Numbered { number: self.number, items: vec![job] }).await.unwrap();
        }
    }

    async fn transfer(&mut self, jobs: usize, limit: usize, bytes: usize) -> Vec<Claim> {
        let mut claims = Vec::new();
        while claims.len() < jobs {
            let request = Transfer { bytes, ..Transfer::new(self.last_seen, limit, LEASE) };
            let Sequenced::Done(answer) = self.link.step(request).await.unwrap() else { panic!("the number is right") };
            self.last_seen = answer.lease_status.sequence;
            claims.extend(answer.claims);
        }
        claims
    }

    async fn settle(&self, claims: &[Claim], change: &Change, metadata: Option<&Metadata>) {
        let outcome = |claim: &Claim| Outcome {
            id: claim.id.clone(),
            token: claim.token,
            change: change.clone(),
            metadata: metadata.cloned(),
        };
        let outcomes = claims.iter().map(outcome).collect();
        self.link
            .step(Settle { last_seen: self.last_seen, lease: LEASE, bytes: DEFAULT_BYTES, outcomes })
            .await
            .unwrap();
    }
}

fn payload(kb: usize) -> String {
    format!("\"{}\"", "x".repeat(kb * 1_000))
}

fn record_of(metadata: &Metadata, kb: usize) -> Record {
    Record::new(metadata, Codec::Json, payload(kb).as_bytes())
}

/// A life with a retry and a rollback: no transfer takes all jobs but by the budget of bytes that nodes use.
async fn by_dq(bench: &mut Bench, server: &Server, kb: usize, jobs: usize) {
    server.empty().await;
    let mut steps = Steps::on(server).await;
    let metadata = Metadata { retain: Duration::from_millis(1), ..Metadata::default() };
    let failed = Metadata { attempts: 1, cause: Some(Cause::Error), error: Some("no".into()), ..metadata.clone() };
    let mut note =
        |what: &str, us: f64| bench.record(Side::Dq, &format!("{kb} KB: {what}"), "µs/job", us / jobs as f64);
    note("add", script_us(server, steps.add(jobs, &record_of(&metadata, kb))).await);
    let most = usize::MAX >> 12;
    let mut claims = Vec::new();
    note("transfer", script_us(server, async { claims = steps.transfer(jobs, jobs, most).await }).await);
    let retry = Change::Retry(Duration::ZERO);
    note("settle: retry", script_us(server, steps.settle(&claims, &retry, Some(&failed))).await);
    note("transfer of failed jobs", script_us(server, async { claims = steps.transfer(jobs, jobs, most).await }).await);
    note("settle: rollback", script_us(server, steps.settle(&claims, &Change::Rollback, None)).await);
    let by_bytes = script_us(server, async { claims = steps.transfer(jobs, jobs, DEFAULT_BYTES).await });
    note("transfer by 1 MiB", by_bytes.await);
    note("settle: ack", script_us(server, steps.settle(&claims, &Change::Ack, None)).await);
}

/// The steps that the bare client has.
async fn by_bare(bench: &mut Bench, server: &Server, kb: usize, jobs: usize) {
    server.empty().await;
    let mut connection = server.connect().await;
    let scripts = Scripts::with_payload(&mut connection, "bare", payload(kb)).await;
    let mut note =
        |what: &str, us: f64| bench.record(Side::Bare, &format!("{kb} KB: {what}"), "µs/job", us / jobs as f64);
    let adds = async {
        for n in 0..jobs {
            scripts.add(&mut connection.clone(), std::iter::once((format!("{n:020}"), 1_000))).await;
        }
    };
    note("add", script_us(server, adds).await);
    let mut claimed = Vec::new();
    note("transfer", script_us(server, async { claimed = scripts.claim(&mut connection, jobs).await }).await);
    note("settle: ack", script_us(server, async { scripts.ack(&mut connection, &claimed).await }).await);
}

/// Jobs of 250 KB that drain while another client pings.
const LARGE: usize = 600;
/// As many of them as dq's budget of bytes lets into an answer.
const LARGE_BATCH: usize = 4;

/// Pings over a connection of its own until the drain is done, and records how long the pings took.
async fn beside_pings(bench: &mut Bench, side: Side, server: &Server, drain: impl Future<Output = ()>) {
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let mut client = server.connect().await;
    let pings = tokio::spawn(async move {
        let mut took = lateness::empty();
        while stopped.try_recv().is_err() {
            let sent = Instant::now();
            ask::<String>(&mut client, &redis::cmd("PING")).await;
            took.saturating_record(sent.elapsed().as_micros() as u64);
        }
        took
    });
    drain.await;
    stop.send(()).unwrap();
    let took = pings.await.unwrap();
    for (what, percentile) in [("p50", 50.0), ("p99.9", 99.9), ("max", 100.0)] {
        let ms = took.value_at_percentile(percentile) as f64 / 1e3;
        bench.record(side, &format!("PING beside a drain of 250 KB: {what}"), "ms", ms);
    }
}

async fn pings_beside_dq(bench: &mut Bench, server: &Server) {
    server.empty().await;
    let mut steps = Steps::on(server).await;
    steps.add(LARGE, &record_of(&Metadata::default(), 250)).await;
    let drain = async {
        let mut drained = 0;
        while drained < LARGE {
            let claims = steps.transfer(1, LARGE, DEFAULT_BYTES).await;
            drained += claims.len();
            steps.settle(&claims, &Change::Ack, None).await;
        }
    };
    beside_pings(bench, Side::Dq, server, drain).await;
}

async fn pings_beside_bare(bench: &mut Bench, server: &Server) {
    server.empty().await;
    let mut connection = server.connect().await;
    let scripts = Scripts::with_payload(&mut connection, "bare", payload(250)).await;
    for n in 0..LARGE {
        scripts.add(&mut connection, std::iter::once((format!("{n:020}"), 1_000))).await;
    }
    let drain = async {
        let mut held = scripts.claim(&mut connection, LARGE_BATCH).await;
        while !held.is_empty() {
            scripts.ack(&mut connection, &held).await;
            held = scripts.claim(&mut connection, LARGE_BATCH).await;
        }
    };
    beside_pings(bench, Side::Bare, server, drain).await;
}

#[tokio::main]
async fn main() {
    let arguments = Arguments::read();
    let part = if arguments.quick { 4 } else { 1 };
    let mut bench = Bench::start("payloads", arguments, 2 * SIZES.len() + 2);
    let server = bench.server().await;
    for _ in bench.rounds() {
        for (kb, jobs) in SIZES {
            bench.step(format!("{kb} KB Bare"));
            by_bare(&mut bench, &server, kb, jobs / part).await;
            bench.step(format!("{kb} KB Dq"));
            by_dq(&mut bench, &server, kb, jobs / part).await;
        }
        bench.step("pings Bare");
        pings_beside_bare(&mut bench, &server).await;
        bench.step("pings Dq");
        pings_beside_dq(&mut bench, &server).await;
    }
    bench.finish();
}
