//! What the scripts cost when payloads are large: 64 jobs of 256 KB, step by step, in milliseconds of the server's own time.
//!
//! `cargo bench -p dq --bench payloads -- [JOBS [KB]]`; starts a server of its own (`redis-server`, or `DQ_REDIS_SERVER`).

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "redis/server.rs"]
mod server;

use std::time::Duration;

use dq::job::{
    AppName, Cause, Codec, Deliver, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName,
};
use dq::store::redis::RedisStore;
use dq::store::step::{Change, Claim, Outcome, Reconcile, Sequenced, Settle, Transfer, USUAL_BYTES};
use dq::store::{Due, Link, NewJob, Numbered, OnDuplicate, Producer, Store};
use server::Server;

const LEASE: Duration = Duration::from_secs(60);
const ROUNDS: usize = 5;

struct Bench {
    server: Server,
    link: std::sync::Arc<dyn Link>,
    last_seen: Sequence,
    spent: Vec<(&'static str, Vec<f64>)>,
}

impl Bench {
    /// Notes what the scripts have cost since `before`.
    async fn note(&mut self, name: &'static str, before: f64) {
        let ms = (self.server.spent().await.script_us - before) / 1_000.0;
        match self.spent.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(ms),
            None => self.spent.push((name, vec![ms])),
        }
    }

    async fn transfer(&mut self, name: &'static str, jobs: usize, bytes: usize) -> Vec<Claim> {
        let mut claims = Vec::new();
        let before = self.server.spent().await.script_us;
        while claims.len() < jobs {
            let request = Transfer {
                last_seen: self.last_seen,
                limit: jobs,
                bytes,
                lease: LEASE,
                fallback: LEASE,
                lookahead: Duration::ZERO,
            };
            let Sequenced::Done(answer) = self.link.step(request).await.unwrap() else { panic!("the number is right") };
            self.last_seen = answer.lease_status.sequence;
            claims.extend(answer.claims);
        }
        self.note(name, before).await;
        claims
    }

    async fn settle(&mut self, name: &'static str, claims: &[Claim], change: Change, metadata: Option<Metadata>) {
        let outcome = |claim: &Claim| Outcome {
            id: claim.id.clone(),
            token: claim.token,
            change: change.clone(),
            metadata: metadata.clone(),
        };
        let request = Settle {
            last_seen: self.last_seen,
            lease: LEASE,
            bytes: USUAL_BYTES,
            outcomes: claims.iter().map(outcome).collect(),
        };
        let before = self.server.spent().await.script_us;
        self.link.step(request).await.unwrap();
        self.note(name, before).await;
    }
}

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<usize>().ok());
    let (jobs, kb) = (numbers.next().unwrap_or(64), numbers.next().unwrap_or(256));
    let server = Server::start();
    server.empty().await;
    let key = TopicKey { app: AppName::new("bench").unwrap(), topic: TopicName::new("t").unwrap() };
    let store = RedisStore::new(&server.url()).unwrap();
    let (link, producer) = (store.link(&key, &NodeId::new("n")), store.producer(&key, &ProducerId::new("p")));
    let first = link.step(Reconcile { last_seen: Sequence(0), after: None, limit: 1 }).await.unwrap();
    let Sequenced::Done(first) = first else { panic!("a first page needs no number") };
    let mut bench = Bench { server, link, last_seen: first.lease_status.sequence, spent: Vec::new() };
    let payload = format!("\"{}\"", "x".repeat(kb * 1_000));
    let metadata = Metadata { retain: Duration::from_millis(1), ..Metadata::default() };
    let failed = Metadata { attempts: 1, cause: Some(Cause::Error), error: Some("no".into()), ..metadata.clone() };
    let mut number = 0;
    for round in 0..ROUNDS {
        let before = bench.server.spent().await.script_us;
        for n in 0..jobs {
            number += 1;
            let job = NewJob {
                id: JobId::new(format!("{round}-{n}")).unwrap(),
                generated: true,
                due: Due::After(Duration::ZERO),
                expires_after: None,
                record: Record::new(&metadata, Codec::Json, payload.as_bytes()),
                on_duplicate: OnDuplicate::Reject,
                deliver: Deliver::Queue,
            };
            producer.add(Numbered { number, items: vec![job] }).await.unwrap();
        }
        bench.note("add", before).await;
        let claims = bench.transfer("transfer", jobs, usize::MAX >> 12).await;
        bench.settle("settle: retry", &claims, Change::Retry(Duration::ZERO), Some(failed.clone())).await;
        let claims = bench.transfer("transfer of failed jobs", jobs, usize::MAX >> 12).await;
        bench.settle("settle: rollback", &claims, Change::Rollback, None).await;
        let claims = bench.transfer("transfer by 1 MiB", jobs, USUAL_BYTES).await;
        bench.settle("settle: ack", &claims, Change::Ack, None).await;
    }
    let spent = bench.server.spent().await;
    let (main, scripts) = (spent.main_us / 1_000.0, spent.scripts);
    println!(
        "{jobs} jobs of {kb} KB, ms of scripts, median of {ROUNDS} rounds; {scripts} scripts, {main:.0} ms of CPU in all"
    );
    for (name, all) in &mut bench.spent {
        all.sort_by(f64::total_cmp);
        println!("{name:24} {:8.2}", all[ROUNDS / 2]);
    }
    drain_beside_pings(&mut bench, &*producer, &record_of(250), number).await;
}

fn record_of(kb: usize) -> Record {
    Record::new(&Metadata::default(), Codec::Json, format!("\"{}\"", "x".repeat(kb * 1_000)).as_bytes())
}

/// Drains 1,200 jobs by transfers of at most 600, while another client sends PINGs, and prints how long these took.
async fn drain_beside_pings(bench: &mut Bench, producer: &dyn Producer, record: &Record, mut number: u64) {
    for n in 0..1_200 {
        number += 1;
        let job = NewJob {
            id: JobId::new(format!("ping-{n}")).unwrap(),
            generated: true,
            due: Due::After(Duration::ZERO),
            expires_after: None,
            record: record.clone(),
            on_duplicate: OnDuplicate::Reject,
            deliver: Deliver::Queue,
        };
        producer.add(Numbered { number, items: vec![job] }).await.unwrap();
    }
    let mut client = bench.server.connect().await;
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let pings = tokio::spawn(async move {
        let mut took = Vec::new();
        while stopped.try_recv().is_err() {
            let sent = std::time::Instant::now();
            server::ask::<String>(&mut client, &redis::cmd("PING")).await;
            took.push(sent.elapsed());
        }
        took.sort();
        took
    });
    let mut drained = 0;
    while drained < 1_200 {
        let request = Transfer {
            last_seen: bench.last_seen,
            limit: 600,
            bytes: USUAL_BYTES,
            lease: LEASE,
            fallback: LEASE,
            lookahead: Duration::ZERO,
        };
        let Sequenced::Done(answer) = bench.link.step(request).await.unwrap() else { panic!("the number is right") };
        bench.last_seen = answer.lease_status.sequence;
        drained += answer.claims.len();
        bench.settle("drain", &answer.claims, Change::Ack, None).await;
    }
    stop.send(()).unwrap();
    let took = pings.await.unwrap();
    let at = |share: usize| took[(took.len() - 1) * share / 1_000];
    println!("PING beside 1,200 jobs of 250 KB: median {:?}, 99.9 % {:?}, longest {:?}", at(500), at(999), at(1_000));
}
