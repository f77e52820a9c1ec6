//! Three nodes, each with a cache: a broadcast drops an entry from all of them when it is due.
//!
//! Here the nodes share one process. They communicate through the store only, as they would in three processes.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Tells every node to drop this key.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "cache-expired", deliver = "broadcast")]
struct CacheExpired {
    #[job(id)]
    key: String,
}

/// The cache of one node, and how often it dropped each key.
#[derive(Debug, Default)]
struct Cache {
    entries: Mutex<BTreeMap<String, u32>>,
    dropped: Mutex<BTreeMap<String, u32>>,
    changed: Notify,
}

impl Cache {
    fn filled() -> Arc<Self> {
        let entries = [("hours", 9), ("menu", 12), ("prices", 42)].map(|(key, value)| (key.to_owned(), value));
        Arc::new(Self { entries: Mutex::new(entries.into()), ..Self::default() })
    }

    fn drop_entry(&self, key: &str) {
        lock(&self.entries).remove(key);
        *lock(&self.dropped).entry(key.into()).or_default() += 1;
        self.changed.notify_one();
    }

    async fn wait_until_dropped(&self, key: &str) {
        while !lock(&self.dropped).contains_key(key) {
            self.changed.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[broadcast_listener(channels = ["cache-expired"])]
struct DropEntry {
    cache: Arc<Cache>,
}

impl BroadcastListener for DropEntry {
    type Message = CacheExpired;

    async fn on_message(&self, expired: Broadcast<CacheExpired>) -> Result<(), JobError> {
        self.cache.drop_entry(&expired.message.key);
        Ok(())
    }
}

/// Starts a node and waits until it receives broadcasts.
async fn start_node(cache: Arc<Cache>) -> Result<Context, Box<dyn Error>> {
    // A plain `memory:` is private to each node; all nodes share `memory:NAME`.
    let variables = std::env::vars().filter(|(name, value)| !(name == "DQ_STORE" && value == "memory:"));
    let dq = ContextFactory::new("website")
        .store("memory:caches") // `DQ_STORE` overrides this
        .variables(variables)
        .provide(cache)
        .start()
        .await?;
    dq.ready().await; // from here on the node receives every broadcast
    Ok(dq)
}

/// Drops an entry from the caches of three nodes by a broadcast.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:caches`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let caches: Vec<_> = (0..3).map(|_| Cache::filled()).collect();
    let mut nodes = Vec::new();
    for cache in &caches {
        nodes.push(start_node(cache.clone()).await?);
    }

    let jobs = nodes[0].provider();
    println!("the prices change in 200 ms, the menu in 400 ms");
    jobs.add(CacheExpired { key: "prices".into() }).after("200ms").replace_existing().await?;
    jobs.add(CacheExpired { key: "menu".into() }).after("400ms").replace_existing().await?;

    // The menu is due last: once a node has dropped it, the node has received every broadcast of the prices.
    for cache in &caches {
        cache.wait_until_dropped("menu").await;
    }
    let mut ok = true;
    for (number, cache) in (1..).zip(&caches) {
        let entries: Vec<_> = lock(&cache.entries).keys().cloned().collect();
        let dropped: Vec<_> =
            lock(&cache.dropped).iter().map(|(key, times)| format!("{key} {times} time(s)")).collect();
        println!("node {number} dropped {}; it still has {}", dropped.join(", "), entries.join(", "));
        ok &= lock(&cache.dropped).values().all(|times| *times == 1) && entries == ["hours"];
    }
    for node in nodes {
        node.shutdown(delay!("5s")).await;
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
