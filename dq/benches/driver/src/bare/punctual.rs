//! The bare loop: it claims what is due, starts a task for each job, and sleeps until the next is due.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinHandle;

use super::Scripts;
use crate::server::{ask, connect};
use crate::{Lateness, now_ms};

/// How long the loop sleeps when no job waits.
const POLL: Duration = Duration::from_millis(5);
const BATCH: usize = 100;

/// Adds `rate` jobs a second for `seconds` to `name`, each due a second after its add; returns how many scripts that took.
pub async fn trickle(url: &str, name: &str, rate: usize, seconds: usize) -> usize {
    let mut connection = connect(url).await;
    let scripts = Scripts::load(&mut connection, name).await;
    paced(rate, seconds, async |from, count| {
        let due = now_ms() + 1_000;
        let jobs = (from..from + count).map(|n| (format!("{due}-{n:016x}"), due));
        scripts.add(&mut connection, jobs).await;
    })
    .await
}

/// Calls `add` with the number of the first job and how many, `rate` jobs a second for `seconds`; returns how often it did.
pub async fn paced(rate: usize, seconds: usize, mut add: impl AsyncFnMut(usize, usize)) -> usize {
    let (start, total) = (tokio::time::Instant::now(), rate * seconds);
    let (mut sent, mut calls) = (0, 0);
    while sent < total {
        let owed = (start.elapsed().as_secs_f64() * rate as f64) as usize;
        let count = owed.min(total).saturating_sub(sent).min(1_000);
        if count > 0 {
            add(sent, count).await;
            calls += 1;
            sent += count;
        } else {
            tokio::time::sleep_until(start + Duration::from_secs_f64((sent + 1) as f64 / rate as f64)).await;
        }
    }
    calls
}

/// A loop that runs the jobs of a queue.
#[derive(Debug)]
pub struct Watched(JoinHandle<()>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs the jobs of `name`, whose ids begin with their due time, by a loop that sleeps with tokio's timer.
pub async fn watch(url: &str, name: &str, lateness: Lateness) -> Watched {
    let mut claiming = connect(url).await;
    let scripts = Scripts::load(&mut claiming, name).await;
    let mut acking = claiming.clone();
    Watched(tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let ((), (ids, sleep)) =
                tokio::join!(scripts.ack(&mut acking, &held), claim_and_head(&scripts, &mut claiming));
            for id in &ids {
                let due = UNIX_EPOCH + Duration::from_millis(id.split('-').next().unwrap().parse().unwrap());
                let lateness = lateness.clone();
                tokio::spawn(async move { lateness.start(due) });
            }
            if ids.is_empty() {
                tokio::time::sleep(sleep).await;
            }
            held = ids;
        }
    }))
}

/// Claims what is due, and tells how long to sleep if that was nothing.
async fn claim_and_head(scripts: &Scripts, connection: &mut MultiplexedConnection) -> (Vec<String>, Duration) {
    type Answer = (Vec<String>, Vec<String>, String, u64, u64);
    let (ids, payloads, head, seconds, micros): Answer = ask(connection, scripts.call(3).arg(BATCH)).await;
    assert_eq!(ids.len(), payloads.len());
    let now = Duration::new(seconds, micros as u32 * 1_000);
    let sleep = head.parse().map_or(POLL, |head| Duration::from_millis(head).saturating_sub(now).min(POLL * 200));
    (ids, sleep)
}

/// Runs the jobs of `name` as soon as a message on the channel `name` announces one.
pub async fn announced(url: &str, name: &'static str, lateness: Lateness) -> Watched {
    let mut claiming = connect(url).await;
    let scripts = Scripts::load(&mut claiming, name).await;
    let mut subscription = redis::Client::open(url).unwrap().get_async_pubsub().await.unwrap();
    subscription.subscribe(name).await.unwrap();
    Watched(tokio::spawn(async move {
        let mut messages = subscription.into_on_message();
        while messages.next().await.is_some() {
            let ids = scripts.claim(&mut claiming, BATCH).await;
            for id in &ids {
                let added = id.split('-').next().unwrap().parse().unwrap();
                let lateness = lateness.clone();
                tokio::spawn(async move { lateness.start(UNIX_EPOCH + Duration::from_nanos(added)) });
            }
            scripts.ack(&mut claiming, &ids).await;
        }
    }))
}
