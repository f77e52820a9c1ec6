//! An app moves from one server to a cluster and back, by the commands of the guide.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dq::inspect::FindingCode;
use dq::job::State;
use dq::prelude::*;
use dq::provider::{AddedHow, CallError, SetCounts, SetState};
use dq::schedule::OnMissed;
use dq_tests::file::Folder;
use dq_tests::redis::{ClusterServers, RedisServer, ask};
use dq_tests::{NodeProcess, RunLog};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::topic;

const GUIDE: &str = include_str!("../../docs/guide/moving-to-a-cluster.md");

const GRACE: Duration = Duration::from_secs(10);

/// How far the clock of the old server is ahead.
const AHEAD: Duration = Duration::from_secs(3_600);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "work")]
struct Work {
    #[job(id)]
    name: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "row")]
struct Row {
    #[job(id)]
    name: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "last")]
struct Last {
    #[job(id)]
    name: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "next")]
struct Next {
    #[job(id)]
    name: String,
}

/// The runs of one store, by job: how many, and the smallest fence.
#[derive(Debug, Clone)]
struct Runs {
    of_job: watch::Sender<BTreeMap<String, (usize, u64)>>,
    /// Whether the app has moved.
    moved: bool,
}

impl Runs {
    fn new(moved: bool) -> Self {
        Self { of_job: watch::Sender::default(), moved }
    }

    fn note<P>(&self, job: &Job<P>) {
        let (id, fence) = (job.id().to_string(), job.fence().0);
        self.of_job.send_modify(|of_job| {
            let run = of_job.entry(id).or_insert((0, fence));
            *run = (run.0 + 1, run.1.min(fence));
        });
    }

    async fn until(&self, names: &[&str]) {
        let all = |of_job: &BTreeMap<_, _>| names.iter().all(|name| of_job.contains_key(*name));
        self.of_job.subscribe().wait_for(all).await.unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.of_job.borrow().contains_key(name)
    }
}

#[delay_listener(register = false)]
async fn work(job: Job<Work>, channel: Channel, runs: &Runs) -> Result<Decided, JobError> {
    runs.note(&job);
    Ok(match job.name.as_str() {
        "dead" if !runs.moved => channel.dead("it is early"),
        "parked" if !runs.moved => channel.park(),
        "first" => channel.ack().then(|next| _ = next.add(Next { name: "second".into() }))?,
        _ => channel.ack(),
    })
}

#[delay_listener(register = false)]
async fn row(job: Job<Row>, channel: Channel, runs: &Runs) -> Result<Decided, JobError> {
    runs.note(&job);
    Ok(channel.ack())
}

#[delay_listener(register = false)]
async fn last(job: Job<Last>, channel: Channel, runs: &Runs) -> Result<Decided, JobError> {
    runs.note(&job);
    Ok(channel.ack())
}

#[delay_listener(register = false)]
async fn next(job: Job<Next>, channel: Channel, runs: &Runs) -> Result<Decided, JobError> {
    runs.note(&job);
    Ok(channel.ack())
}

fn factory(url: &str) -> ContextFactory {
    topic::factory(url).topic("work", |topic| topic.history_max(20).history_retention("1h"))
}

async fn start(url: &str, runs: &Runs) -> Context {
    let factory = factory(url).provide(runs.clone());
    factory.listener::<work>().listener::<row>().listener::<last>().listener::<next>().start().await.unwrap()
}

fn job(name: &str) -> Work {
    Work { name: name.into() }
}

/// Runs the commands of the guide.
fn copy(from: u16, to: u16) -> Result<(), String> {
    let block = GUIDE.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let script = format!("{block}\ncopy 127.0.0.1:{from} 127.0.0.1:{to}");
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash is installed");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() && said.is_empty() { Ok(()) } else { Err(said) }
}

/// Brings an app into every state that a store can have.
async fn prepare(url: &str) {
    let (runs, log) = (Runs::new(false), RunLog::default());
    let node = start(url, &runs).await;
    // From then on the histories are kept.
    node.ready().await;
    let jobs = node.provider();
    jobs.pause::<Last>().reason("until it has moved").await.unwrap();
    jobs.drain::<Next>().reason("until it has moved").await.unwrap();
    let set = jobs.job_set::<Last>("a set");
    set.add(Row { name: "early".into() }).await.unwrap();
    set.add(Row { name: "late".into() }).after("1h").await.unwrap();
    jobs.add_many(["dead", "parked", "first"].map(job)).await.unwrap().all().unwrap();
    runs.until(&["dead", "parked", "first", "early"]).await;
    // A node that stops between the last attempt and `on_exhausted` gives the job back, and another one goes on from there.
    let state = async |id: &str| jobs.get::<Work>(id).await.unwrap().map(|seen| seen.state());
    while (state("dead").await, state("parked").await) != (Some(State::Dead), Some(State::Unacked)) {
        tokio::task::yield_now().await;
    }
    node.shutdown(GRACE).await;
    // It dies with a job that it runs.
    let short = [("DQ_LEASE", "2s"), ("DQ_HEARTBEAT_INTERVAL", "500ms")];
    let node = NodeProcess::start(env!("CARGO_BIN_EXE_node"), url, &short, 0, "one", &log).await;
    let adder = factory(url).without_listeners().start().await.unwrap();
    let jobs = adder.provider();
    jobs.add(dq_tests::Count { n: 7 }).await.unwrap();
    log.until(|runs| runs.of_job.contains_key(&7)).await;
    node.kill().await;
    jobs.add(job("near")).await.unwrap();
    jobs.add(job("soon")).after("2s").await.unwrap();
    jobs.add(job("far")).after("1h").await.unwrap();
    jobs.add(job("taken")).unique_for("1h").await.unwrap();
    jobs.delete::<Work>("taken").await.unwrap();
    jobs.add_schedule("each", job("tick")).every("1s").on_missed(OnMissed::All).await.unwrap();
    adder.shutdown(GRACE).await;
}

/// What the doctor finds in the topics, except that no node listens.
async fn found(jobs: &Provider) -> Vec<String> {
    let mut doctor = jobs.inspect().doctor(None).unwrap();
    while doctor.step().await.unwrap().is_some() {}
    let findings = doctor.findings().iter();
    findings
        .filter(|finding| finding.topic.is_some() && finding.code != FindingCode::NoListener)
        .map(ToString::to_string)
        .collect()
}

/// Runs everything to its end, once.
async fn finish(url: &str, least_fence: u64, others: &[&str]) {
    let adder = factory(url).without_listeners().start().await.unwrap();
    let jobs = adder.provider();
    assert_eq!(found(jobs).await, [""; 0]);
    let set = jobs.job_set::<Last>("a set");
    let seen = set.seen().await.unwrap().unwrap();
    assert_eq!((seen.state, seen.counts), (SetState::Open, SetCounts { members: 2, acked: 1, dead: 0, left: 0 }));
    let history = jobs.inspect().history("work", "dead").await.unwrap();
    assert_eq!(history.len(), 3, "{history:?}");
    let state = async |id: &str| jobs.get::<Work>(id).await.unwrap().map(|seen| seen.state());
    let states = (state("dead").await, state("parked").await);
    assert_eq!(states, (Some(State::Dead), Some(State::Unacked)), "{history:?}");
    assert!(jobs.add(job("taken")).await.is_err(), "the id stays taken");

    let runs = Runs::new(true);
    let node = start(url, &runs).await;
    for name in ["dead", "parked"] {
        assert!(jobs.requeue::<Work>(name).await.unwrap().changed);
    }
    jobs.run_now::<Work>("far").await.unwrap();
    jobs.run_now::<Row>("late").await.unwrap();
    set.then(Last { name: "end".into() }).await.unwrap();
    runs.until(&["near", "soon", "far", "dead", "parked", "late"]).await;
    assert!(!runs.has("end") && !runs.has("second"), "one topic is paused, and the other one drains");
    runs.until(others).await;
    jobs.resume::<Last>().await.unwrap();
    jobs.undrain::<Next>().await.unwrap();
    runs.until(&["end", "second"]).await;
    let log = RunLog::default();
    let counter = NodeProcess::start(env!("CARGO_BIN_EXE_node"), url, &[], 1, "two", &log).await;
    log.until(|runs| runs.of_job.contains_key(&7)).await;
    assert!(counter.stop().await.0.success());
    node.shutdown(GRACE).await;

    let of_job = runs.of_job.borrow().clone();
    assert!(of_job.values().all(|(count, _)| *count == 1), "{of_job:?}");
    assert!(of_job.len() > 8, "the schedule adds jobs: {of_job:?}");
    assert!(of_job["near"].1 > least_fence, "a fence went back: {of_job:?}");
    assert_eq!(found(jobs).await, [""; 0]);
    adder.shutdown(GRACE).await;
}

/// The last fence of a topic on a server whose clock is ahead.
fn fence() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + AHEAD;
    time.as_micros().try_into().unwrap()
}

/// Makes a server unreachable for all programs. It listens on another port from then on, which is returned.
fn hide(server: &RedisServer) -> u16 {
    let mut connection = server.connect();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(ask(&mut connection, &["CONFIG", "SET", "port", &port.to_string()]), "+OK");
    for kind in ["normal", "pubsub"] {
        ask(&mut connection, &["CLIENT", "KILL", "TYPE", kind]);
    }
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_moves_to_a_cluster_by_the_commands_of_the_guide_and_everything_runs_once() {
    let (server, cluster, fence, folder) = (RedisServer::start(), ClusterServers::start(), fence(), Folder::unmade());
    prepare(&server.url()).await;
    server.command(&["HSET", "dq:{shop:work}:meta", "fence", &fence.to_string()]);
    let producer = async |url: &str| factory(url).buffer(folder.path()).connect().await.unwrap();
    let old = producer(&server.url()).await;
    assert_eq!(old.add(job("before")).await.unwrap().how, AddedHow::New);
    let port = hide(&server);
    let added = loop {
        match old.add(job("meanwhile")).await {
            // It was written to a connection that had been killed, which the client had not seen.
            Err(CallError::Unknown { .. }) => {}
            added => break added.unwrap(),
        }
    };
    assert_eq!(added.how, AddedHow::Buffered);
    copy(port, cluster.servers[1].port()).unwrap();
    let refused = copy(port, cluster.servers[1].port()).unwrap_err();
    assert!(refused.contains("BUSYKEY"), "{refused}");
    drop(old);
    let new = producer(&cluster.url()).await;
    topic::until(|| new.buffer().unwrap().jobs == 0).await;
    finish(&cluster.url(), fence, &["before", "meanwhile"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_moves_from_a_cluster_to_one_server_by_the_commands_of_the_guide_and_everything_runs_once() {
    let (server, cluster, fence) = (RedisServer::start(), ClusterServers::start(), fence());
    prepare(&cluster.url()).await;
    let meta = "dq:{shop:work}:meta";
    cluster.servers[cluster.owner(meta)].command(&["HSET", meta, "fence", &fence.to_string()]);
    copy(cluster.servers[2].port(), server.port()).unwrap();
    finish(&server.url(), fence, &[]).await;
}
