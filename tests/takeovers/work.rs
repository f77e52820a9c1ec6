//! The jobs and handlers of the nodes.

use std::time::Duration;

use dq::DelayJob;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// A job of the idle topic, which runs until it is released.
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "idle")]
pub struct Idle {
    #[job(id)]
    pub n: u64,
}

/// A job of the busy topic; short unless it is held until it is released.
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "busy")]
pub struct Busy {
    #[job(id)]
    pub n: u64,
    pub is_held: bool,
}

/// What the handlers of a node report to, and wait for.
#[derive(Debug, Clone)]
pub struct Held {
    /// Each held job that begins.
    pub begins: mpsc::UnboundedSender<u64>,
    /// The last number that was released.
    pub released: watch::Receiver<u64>,
}

impl Held {
    async fn hold(&self, n: u64) -> Result<(), JobError> {
        self.begins.send(n)?;
        self.released.clone().wait_for(|released| *released == n).await?;
        Ok(())
    }
}

#[delay_listener(register = false, timeout = "none")]
async fn idle(job: Job<Idle>, held: &Held) -> Result<(), JobError> {
    held.hold(job.n).await
}

#[delay_listener(register = false, timeout = "none")]
async fn busy(job: Job<Busy>, held: &Held) -> Result<(), JobError> {
    if job.is_held {
        return held.hold(job.n).await;
    }
    let handler_takes = Duration::from_millis(job.n % 40);
    tokio::time::sleep(handler_takes).await;
    Ok(())
}

/// A node with both listeners.
pub fn listening(factory: ContextFactory, held: Held) -> ContextFactory {
    factory.without_inventory().listener::<idle>().listener::<busy>().provide(held)
}

/// Adds the job that is held.
pub async fn add(provider: &Provider, is_busy: bool, n: u64) {
    let added = match is_busy {
        true => provider.add(Busy { n, is_held: true }).await.map(drop),
        false => provider.add(Idle { n }).await.map(drop),
    };
    added.expect("the store is there");
}

/// Adds short jobs for ever.
pub async fn keep_busy(provider: Provider, mut random: fastrand::Rng) {
    for n in 1_000_000.. {
        provider.add(Busy { n, is_held: false }).await.expect("the store is there");
        sleep_until(Instant::now() + Duration::from_millis(random.u64(50..400))).await;
    }
}

/// How long to wait before a job is added, and before its node is killed.
pub fn waits(lease: Duration, random: &mut fastrand::Rng) -> [Duration; 2] {
    let most = lease.mul_f64(1.4).max(Duration::from_millis(500)).as_millis() as u64;
    [0, 1].map(|_| Duration::from_millis(random.u64(0..most)))
}
