//! A node on a store that has hostile input: what it runs, and whether its other jobs run as if there were none.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::job::{AppName, JobId, JobState, TopicKey, TopicName};
use dq::prelude::*;
use dq::provider::TopicProvider;
use dq::store::{LimitKind, Store, Stored};
use dq::testing::Harness;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::draw::{Draw, NOW};
use crate::target::Found;

/// How many jobs have nothing to do with the input.
const INNOCENT: usize = 3;
/// What every run of a node has: retries are over, leases of others have expired, and schedules have fired.
const TIME: Duration = Duration::from_secs(90);

/// The id of a job whose handler takes a while.
pub const LONG: &str = "long";

/// A job of any payload.
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "t")]
pub struct Anything(Value);

/// A broadcast of any payload.
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "t", deliver = "broadcast")]
struct Told(Value);

/// How often the handler of each job ended, and whether the job was then over.
#[derive(Debug, Clone, Default)]
pub struct Runs(Arc<Mutex<BTreeMap<String, (u32, bool)>>>, Arc<Notify>);

impl Runs {
    fn note(&self, id: &JobId, is_over: bool) {
        let mut runs = self.0.lock().expect("no handler panics");
        let run = runs.entry(id.to_string()).or_default();
        *run = (run.0 + 1, is_over);
        self.1.notify_waiters();
    }

    /// Waits until the job is over.
    pub async fn ended(&self, id: &str) {
        loop {
            let mut noted = pin!(self.1.notified());
            noted.as_mut().enable();
            if self.of(id).1 {
                return;
            }
            noted.await;
        }
    }

    pub fn of(&self, id: &str) -> (u32, bool) {
        self.0.lock().expect("no handler panics").get(id).copied().unwrap_or_default()
    }
}

/// Handles each job as its id says.
#[delay_listener(register = false)]
pub struct Handles {
    runs: Runs,
}

impl DelayListener for Handles {
    type Job = Anything;

    async fn on_due(&self, job: Job<Anything>, channel: Channel) -> Result<Decided, JobError> {
        let id = job.id();
        let sum = id.as_str().bytes().map(u32::from).sum::<u32>() % 6;
        let sum = if id.as_str().starts_with("innocent") { 0 } else { sum };
        if id.as_str() == LONG {
            tokio::time::sleep(TIME).await; // handler_takes
        }
        self.runs.note(id, sum < 2 || id.as_str() == LONG);
        match sum {
            _ if id.as_str() == LONG => Ok(channel.ack()),
            0 | 1 => Ok(channel.ack()),
            2 => Err("x".repeat(5_000).into()),
            3 => Ok(channel.park()),
            4 if job.attempt() == 0 => Ok(channel.rejoin_after("10s")),
            4 => Err("no\u{1b}[2J".into()),
            _ => Ok(channel.park()),
        }
    }

    async fn on_park_timeout(&self, _: Job<Anything>) -> Result<UnackedDecision, JobError> {
        Ok(UnackedDecision::Keep)
    }
}

#[broadcast_listener(channels = ["t"], register = false)]
struct Hears;

impl BroadcastListener for Hears {
    type Message = Told;

    async fn on_message(&self, _: Broadcast<Told>) -> Result<(), JobError> {
        Ok(())
    }
}

pub fn key() -> TopicKey {
    TopicKey { app: AppName::new("test").expect("it is a name"), topic: TopicName::new("t").expect("it is a name") }
}

/// The ids of jobs that only a handler ends: neither schedules, nor what a store forgets by itself or a follow-up may delete.
pub async fn lasting(store: &dyn Store, ids: Vec<JobId>, draw: &Draw) -> Vec<JobId> {
    let stored = store.get(&key(), &ids).await.expect("a memory store answers");
    let lasts = |place: &JobState| match place {
        JobState::Delayed { .. } | JobState::Unacked { .. } => true,
        JobState::Dead { since } => since.as_millis() > NOW - 300 * 24 * 3_600_000,
        _ => false,
    };
    let both = ids.into_iter().zip(stored).filter_map(|(id, stored)| Some((id, stored?)));
    let is_lasting = |(id, stored): &(JobId, Stored)| {
        !id.as_str().starts_with("dq:") && lasts(&stored.place) && draw.is_left_alone(id)
    };
    both.filter(is_lasting).map(|(id, _)| id).collect()
}

/// Runs this under a paused clock, on a runtime of its own.
pub fn paused<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime starts").block_on(run)
}

/// Adds jobs that have nothing to do with the input, and returns their ids.
pub async fn add_innocent_jobs(topic: &TopicProvider, after: &str, found: &mut Found) -> Vec<String> {
    let ids: Vec<_> = (0..INNOCENT).map(|number| format!("innocent-{number}")).collect();
    for (number, id) in ids.iter().enumerate() {
        if let Err(error) = topic.add_json(json!(number)).id(id.as_str()).after(after).await {
            found.lost(format!("`{id}` is not added: {error}"));
        }
    }
    ids
}

/// A node, and what its handlers did.
pub struct Node {
    pub dq: Harness,
    pub runs: Runs,
}

impl Node {
    pub async fn start(store: Arc<dyn Store>) -> Self {
        let runs = Runs::default();
        let dq = Harness::start_on(store, 1, |factory| {
            let factory = factory.provide(runs.clone()).listener::<Handles>().broadcast_listener::<Hears>();
            factory.topic("t", |topic| topic.retry("1s, 5s").dead_retention("3650d").timeout("10m"))
        });
        Self { dq: dq.await, runs }
    }

    /// Adds jobs that have nothing to do with the input, lets the node run, and checks that each ran once and is gone.
    pub async fn runs_innocent_jobs(&self, found: &mut Found) {
        let topic = self.dq.provider().topic("t").expect("it is a topic");
        // The input may have paused or limited the topic.
        let _ = (topic.resume().await, topic.undrain().await);
        for kind in LimitKind::ALL {
            let _ = topic.clear_limit(kind).await;
        }
        let ids = add_innocent_jobs(&topic, "1s", found).await;
        self.dq.advance(TIME).await;
        for id in ids {
            let (times, _) = self.runs.of(&id);
            let is_there = topic.get(id.as_str()).await.map(|job| job.is_some());
            if times != 1 || !matches!(is_there, Ok(false)) {
                found.lost(format!("`{id}` ran {times} times, and is in the store: {is_there:?}"));
            }
        }
    }

    /// Each of these jobs is there, or its handler said that it is over.
    pub async fn still_has(&self, jobs: &[JobId], found: &mut Found) {
        let topic = self.dq.provider().topic("t").expect("it is a topic");
        for id in jobs {
            match topic.get(id).await {
                Ok(Some(_)) => {}
                Ok(None) if self.runs.of(id.as_str()).1 => {}
                other => {
                    let runs = self.runs.of(id.as_str());
                    found.lost(format!("`{}` is lost: {runs:?}, {other:?}", id.as_str().escape_debug()));
                }
            }
        }
    }

    /// What people look with fails at nothing: the doctor, and every page of jobs.
    pub async fn looks(&self, found: &mut Found) {
        let inspect = self.dq.provider().inspect();
        if let Ok(mut doctor) = inspect.doctor(Some("t")) {
            loop {
                match doctor.step().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => return found.lost(format!("the doctor fails: {error}")),
                }
            }
        }
    }
}
