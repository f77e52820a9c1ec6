//! Nodes of one process on a memory store, under a paused clock.

use std::time::Duration;

use dq::prelude::*;
use dq::testing::Harness;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::Options;
use crate::figures::{Figures, limit};
use crate::work::{Held, add, keep_busy, listening, waits};

/// A node, and what it reports.
struct Node {
    harness: Harness,
    begins: mpsc::UnboundedReceiver<u64>,
}

/// Kills so many nodes, one after the other.
pub fn measure(lease: Duration, options: &Options) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime can be built").block_on(kill_all(lease, options))
}

async fn kill_all(lease: Duration, options: &Options) -> Figures {
    let (mut random, mut figures) = (fastrand::Rng::with_seed(options.seed), Figures::default());
    let (release, released) = watch::channel(0);
    let with = |begins| {
        let held = Held { begins, released: released.clone() };
        move |factory: ContextFactory| listening(factory, held).lease(lease)
    };
    let first = Harness::start(|factory| factory.listener::<nothing>()).await;
    tokio::spawn(keep_busy(first.provider().clone(), random.fork()));
    let (mut nodes, mut seed) = (Vec::new(), options.seed);
    for n in 1..=options.kills as u64 {
        while nodes.len() < 2 || nodes.len() < 4 && random.bool() {
            seed += 1;
            let (begins, reports) = mpsc::unbounded_channel();
            nodes.push(Node { harness: first.another(seed, with(begins)).await, begins: reports });
            sleep_until(Instant::now() + Duration::from_millis(random.u64(0..20_000))).await;
        }
        let [before, after] = waits(lease, &mut random);
        sleep_until(Instant::now() + before).await;
        let is_busy = random.bool();
        add(first.provider(), is_busy, n).await;
        let holder = begins(&mut nodes, lease, n).await;
        sleep_until(Instant::now() + after).await;
        let killed = nodes.swap_remove(holder);
        let died = Instant::now();
        killed.harness.kill();
        begins(&mut nodes, lease, n).await;
        figures.add(is_busy, died.elapsed());
        release.send_replace(n);
    }
    figures
}

/// Waits until this job begins, and returns the place of its node.
async fn begins(nodes: &mut [Node], lease: Duration, n: u64) -> usize {
    let (since, limit) = (Instant::now(), limit(lease));
    loop {
        assert!(since.elapsed() < limit, "job {n} did not begin within {limit:?}, lease {lease:?}");
        let found = nodes.iter_mut().position(|node| node.begins.try_recv() == Ok(n));
        if let Some(found) = found {
            return found;
        }
        sleep_until(Instant::now() + Duration::from_millis(5)).await;
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize, dq::DelayJob)]
#[job(topic = "nothing")]
struct Nothing {}

/// The node that adds the jobs runs none of them.
#[delay_listener(register = false)]
async fn nothing(_job: Job<Nothing>) -> Result<(), JobError> {
    Ok(())
}
