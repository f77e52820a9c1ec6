//! Sessions whose deadline moves with each heartbeat, the verbs that move it, and what else becomes of sessions.

use std::ops::Range;
use std::time::{Duration, Instant};

use dq::prelude::*;
use dq_bench::{Bench, Cost, Meter, Permits, Server, Side};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::job::{by_thousands, factory};

/// A job with an id of its own and hardly a payload.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "sessions")]
pub(crate) struct Session(#[job(id)] pub(crate) u64);

/// How a heartbeat moves the deadline of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    AddAgain,
    AddOrExtend,
    ExtendBy,
    Update,
}

impl Verb {
    pub(crate) const HEARTBEATS: [Self; 3] = [Self::AddAgain, Self::AddOrExtend, Self::ExtendBy];

    /// The name of its figure.
    pub(crate) const fn heartbeat(self) -> &'static str {
        match self {
            Self::AddAgain => "10,000 heartbeats a second, replace_existing",
            Self::AddOrExtend => "10,000 heartbeats a second, add_or_extend",
            Self::ExtendBy => "10,000 heartbeats a second, extend_by",
            Self::Update => "10,000 heartbeats a second, update",
        }
    }

    /// Applies it to these sessions in one call. Each waits for this long afterwards, if the verb says so.
    pub(crate) async fn apply(self, jobs: &Provider, sessions: Range<u64>, wait: &'static str) {
        match self {
            Self::AddAgain => {
                let added = jobs.add_many(sessions.map(Session)).after(wait).replace_existing().await.unwrap();
                added.all().unwrap();
            }
            Self::AddOrExtend => {
                let extended = jobs.add_or_extend_many(sessions.map(Session)).after(wait).at_most("8h").await.unwrap();
                assert!(extended.iter().all(Result::is_ok));
            }
            Self::ExtendBy => {
                let changed = jobs.change_many(sessions.map(|id| jobs.extend_by::<Session>(id, "1s"))).await.unwrap();
                assert!(changed.iter().all(Result::is_ok));
            }
            Self::Update => {
                let changed = jobs.change_many(sessions.map(|id| jobs.update(id, Session(id)))).await.unwrap();
                assert!(changed.iter().all(Result::is_ok));
            }
        }
    }
}

/// Sessions that live for half an hour, with a heartbeat a second each: 100 of them in a call every 10 ms. Records what a heartbeat costs,
/// and how long after its time a call was answered.
pub(crate) async fn paced(bench: &mut Bench, server: &Server, verb: Verb, seconds: u64) {
    const SESSIONS: u64 = 10_000;
    const CALL: u64 = 100;
    server.empty().await;
    let node = factory(server.url()).without_listeners().start().await.unwrap();
    let jobs = node.provider();
    by_thousands(SESSIONS, |part| jobs.add_many(part.map(Session)).after("30m")).await;
    let calls = seconds * SESSIONS / CALL;
    let mut late = Histogram::<u64>::new(3).unwrap();
    let meter = Meter::on(server).await;
    let began = Instant::now();
    for call in 0..calls {
        let at = began + Duration::from_millis(10 * call);
        tokio::time::sleep_until(at.into()).await;
        let from = call * CALL % SESSIONS;
        verb.apply(jobs, from..from + CALL, "30m").await;
        late.record(at.elapsed().as_micros() as u64).unwrap();
    }
    let cost = meter.end_on(server, (calls * CALL) as usize).await;
    bench.record_cost(Side::Dq, verb.heartbeat(), &cost);
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let answered = late.value_at_quantile(quantile) as f64 / 1_000.0;
        bench.record(Side::Dq, &format!("{}: answered after, {name}", verb.heartbeat()), "ms", answered);
    }
    node.shutdown(Duration::from_secs(1)).await;
}

#[delay_listener(register = false)]
async fn end(job: Job<Session>, runs: &Permits) -> Result<(), JobError> {
    std::hint::black_box(&job);
    runs.add(1);
    Ok(())
}

/// The draining of sessions, each of which was changed once if `changed`.
pub(crate) async fn drained(server: &Server, jobs: &Provider, count: u64, changed: bool) -> Cost {
    for from in (0..count).step_by(1_000) {
        jobs.add_many((from..from + 1_000).map(Session)).await.unwrap().all().unwrap();
        if changed {
            Verb::Update.apply(jobs, from..from + 1_000, "0s").await;
        }
    }
    let (runs, meter) = (Permits::of(0), Meter::on(server).await);
    let node = factory(server.url()).listener::<end>().provide(runs.clone()).start().await.unwrap();
    runs.take(count as usize).await;
    let cost = meter.end_on(server, count as usize).await;
    node.shutdown(Duration::from_secs(1)).await;
    cost
}

/// The jobs of a schedule that ticks each second, or as many that are added alone, one in five milliseconds.
pub(crate) async fn ticks(server: &Server, by_schedule: bool) -> Cost {
    const SCHEDULES: u64 = 200;
    let runs = Permits::of(0);
    let node = factory(server.url()).listener::<end>().provide(runs.clone()).start().await.unwrap();
    node.ready().await;
    let jobs = node.provider();
    if by_schedule {
        for n in 0..SCHEDULES {
            jobs.add_schedule(format!("s{n}"), Session(n)).every("1s").jitter("900ms").await.unwrap();
        }
        runs.take(SCHEDULES as usize).await;
    }
    let (meter, began) = (Meter::on(server).await, Instant::now());
    if !by_schedule {
        for n in 0..3 * SCHEDULES {
            tokio::time::sleep_until((began + Duration::from_millis(5 * n)).into()).await;
            jobs.add(Session(n)).after("50ms").await.unwrap();
        }
    }
    runs.take(3 * SCHEDULES as usize).await;
    let cost = meter.end_on(server, 3 * SCHEDULES as usize).await;
    node.shutdown(Duration::from_secs(1)).await;
    cost
}
