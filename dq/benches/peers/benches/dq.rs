//! dq with its defaults.

use std::time::Duration;

use dq::prelude::*;
use dq_peers::{Peer, count};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "nothing")]
struct Nothing {
    payload: String,
}

fn nothing() -> Nothing {
    Nothing { payload: crate::text() }
}

#[delay_listener(register = false)]
async fn run(job: Job<Nothing>) -> Result<(), JobError> {
    std::hint::black_box(&job.payload);
    count();
    Ok(())
}

#[derive(Clone)]
pub(crate) struct Dq(Provider);

fn factory(url: &str) -> ContextFactory {
    ContextFactory::new("peers").store(url).without_inventory().variables([("", ""); 0])
}

impl Peer for Dq {
    const NAME: &'static str = "dq";
    type Worker = Context;

    async fn connect(url: &str) -> Self {
        Self(Provider::connect("peers", url).await.unwrap())
    }

    async fn add(&mut self) {
        self.0.add(nothing()).await.unwrap();
    }

    async fn add_many(&mut self, jobs: usize) {
        self.0.add_many((0..jobs).map(|_| nothing())).await.unwrap().all().unwrap();
    }

    async fn work(&self, url: &str) -> Context {
        factory(url).listener::<run>().start().await.unwrap()
    }

    async fn end(worker: Context) {
        worker.shutdown(Duration::from_secs(1)).await;
    }
}
