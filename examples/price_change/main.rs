//! A price changes: one node writes it into the search index, and every node drops it from its cache. One job does both.
//!
//! Here the nodes share one process. They communicate through the store only, as they would in two processes.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

/// A job of the topic and a broadcast to the channel of this name, added, replaced and deleted together.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "price", deliver = "both")]
struct PriceChanges {
    #[job(id)]
    book: u64,
    cents: u32,
}

/// What all nodes share.
#[derive(Debug, Default)]
struct SearchIndex(AtomicU32);

/// What each node has in memory: the books whose old price it still knows.
#[derive(Debug)]
struct Cache(Mutex<BTreeSet<u64>>);

impl Cache {
    fn books(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs on one node, with retries: this must be done.
#[delay_listener(timeout = "5s", retry = "1s x 5")]
async fn index(job: Job<PriceChanges>, index: &Arc<SearchIndex>) -> Result<(), JobError> {
    index.0.fetch_add(job.cents, Relaxed);
    Ok(())
}

/// Runs on every node that is connected, at most once: a cache that misses it is only stale for a while.
#[broadcast_listener(channels = ["price"])]
struct DropPrice {
    cache: Arc<Cache>,
}

impl BroadcastListener for DropPrice {
    type Message = PriceChanges;

    async fn on_message(&self, price: Broadcast<PriceChanges>) -> Result<(), JobError> {
        self.cache.books().remove(&price.message.book);
        Ok(())
    }
}

/// Starts a node and waits until it receives broadcasts.
async fn start_node(index: Arc<SearchIndex>, cache: Arc<Cache>) -> Result<Context, Box<dyn Error>> {
    // A plain `memory:` is private to each node; both share `memory:NAME`.
    let variables = std::env::vars().filter(|(name, value)| !(name == "DQ_STORE" && value == "memory:"));
    let dq = ContextFactory::new("books")
        .store("memory:prices") // `DQ_STORE` overrides this
        .variables(variables)
        .provide(index)
        .provide(cache)
        .start()
        .await?;
    dq.ready().await;
    Ok(dq)
}

/// Lets one node run a job and all nodes receive it as a broadcast.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:prices`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let index = Arc::new(SearchIndex::default());
    let caches: Vec<_> = (0..2).map(|_| Arc::new(Cache(Mutex::new([7, 8].into())))).collect();
    let one = start_node(index.clone(), caches[0].clone()).await?;
    let two = start_node(index.clone(), caches[1].clone()).await?;

    println!("the price of book 7 becomes 1200 in 200 ms");
    one.provider().add(PriceChanges { book: 7, cents: 1200 }).after("200ms").replace_existing().await?;
    while index.0.load(Relaxed) == 0 || caches.iter().any(|cache| cache.books().contains(&7)) {
        sleep(delay!("10ms")).await;
    }
    one.shutdown(delay!("5s")).await;
    two.shutdown(delay!("5s")).await;
    println!("the index was written once: {}", index.0.load(Relaxed));
    let left: Vec<_> = caches.iter().map(|cache| cache.books().clone()).collect();
    println!("the nodes still know the prices of {left:?}");
    let is_right = index.0.load(Relaxed) == 1200 && left.iter().all(|books| *books == [8].into());
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
