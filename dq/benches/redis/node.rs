//! The jobs through dq: a node, its provider and a handler that does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::round::{Meter, Round, payload};
use crate::server::Server;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "nothing")]
struct Nothing {
    payload: String,
}

fn nothing() -> Nothing {
    serde_json::from_str(payload()).unwrap()
}

#[derive(Debug, Clone, Default)]
struct Tally(Arc<(AtomicUsize, AtomicUsize, Notify)>);

impl Tally {
    fn of(jobs: usize) -> Self {
        let tally = Self::default();
        tally.0.1.store(jobs, Relaxed);
        tally
    }

    fn count(&self) {
        if self.0.0.fetch_add(1, Relaxed) + 1 == self.0.1.load(Relaxed) {
            self.0.2.notify_one();
        }
    }

    async fn all(&self) {
        self.0.2.notified().await;
    }
}

#[delay_listener(register = false)]
async fn do_nothing(job: Job<Nothing>, tally: &Tally) -> Result<(), JobError> {
    std::hint::black_box(&job.payload);
    tally.count();
    Ok(())
}

fn factory(server: &Server) -> ContextFactory {
    ContextFactory::new("bench").store(server.url()).without_inventory().variables([("", ""); 0])
}

/// Each caller adds `batch` jobs at a time and waits for the answer.
pub(crate) async fn lives(server: &Server, jobs: usize, callers: usize, batch: usize) -> Round {
    server.empty().await;
    let tally = Tally::of(jobs);
    let dq = factory(server).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    dq.ready().await;
    let meter = Meter::start(server, jobs).await;
    for _ in 0..callers {
        let provider = dq.provider().clone();
        tokio::spawn(async move {
            for _ in 0..jobs / callers / batch {
                if batch == 1 {
                    provider.add(nothing()).await.unwrap();
                } else {
                    provider.add_many((0..batch).map(|_| nothing())).await.unwrap();
                }
            }
        });
    }
    tally.all().await;
    let round = meter.end(server).await;
    dq.shutdown(Duration::from_secs(1)).await;
    round
}

/// All jobs are there, and due, before the node starts.
pub(crate) async fn drain(server: &Server, jobs: usize) -> Round {
    server.empty().await;
    let adding = factory(server).without_listeners().start().await.unwrap();
    for from in (0..jobs).step_by(1_000) {
        adding.provider().add_many((from..jobs.min(from + 1_000)).map(|_| nothing())).await.unwrap();
    }
    let tally = Tally::of(jobs);
    let meter = Meter::start(server, jobs).await;
    let dq = factory(server).listener::<do_nothing>().provide(tally.clone()).start().await.unwrap();
    tally.all().await;
    let round = meter.end(server).await;
    dq.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    round
}
