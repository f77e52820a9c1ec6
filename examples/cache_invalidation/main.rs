//! Three nodes with a cache each: a broadcast drops an entry from all of them, when its time has come.
//!
//! The nodes live in one process here and find each other through the store, as they would in three.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Every node drops this key, at the same time.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "cache-expired", deliver = "broadcast")]
struct CacheExpired {
    #[job(id)]
    key: String,
}

/// The cache of one node, and how often it was told to drop which key.
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

    fn forget(&self, key: &str) {
        lock(&self.entries).remove(key);
        *lock(&self.dropped).entry(key.into()).or_default() += 1;
        self.changed.notify_one();
    }

    async fn has_forgotten(&self, key: &str) {
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
        self.cache.forget(&expired.message.key);
        Ok(())
    }
}

/// Starts a node and waits until it hears broadcasts.
async fn start_node(cache: Arc<Cache>) -> Result<Context, Box<dyn Error>> {
    // `memory:` would be a store for each node alone, `memory:NAME` is one for all who name it.
    let variables = std::env::vars().filter(|(name, value)| !(name == "DQ_STORE" && value == "memory:"));
    let dq = ContextFactory::new("website")
        .store("memory:caches") // `DQ_STORE` outweighs it
        .variables(variables)
        .provide(cache)
        .start()
        .await?;
    dq.ready().await; // from here on it hears every broadcast
    Ok(dq)
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let caches: Vec<_> = (0..3).map(|_| Cache::filled()).collect();
    let mut nodes = Vec::new();
    for cache in &caches {
        nodes.push(start_node(cache.clone()).await?);
    }

    let jobs = nodes[0].provider();
    println!("the prices change in 200 ms, the menu in 400 ms");
    jobs.add(CacheExpired { key: "prices".into() }).after("200ms").replace_existing().await?;
    jobs.add(CacheExpired { key: "menu".into() }).after("400ms").replace_existing().await?;

    // The menu comes last: when it was heard, the prices were heard as often as they ever will be.
    for cache in &caches {
        cache.has_forgotten("menu").await;
    }
    let mut fine = true;
    for (number, cache) in (1..).zip(&caches) {
        let entries: Vec<_> = lock(&cache.entries).keys().cloned().collect();
        let dropped: Vec<_> =
            lock(&cache.dropped).iter().map(|(key, times)| format!("{key} {times} time(s)")).collect();
        println!("node {number} dropped {}; it still has {}", dropped.join(", "), entries.join(", "));
        fine &= lock(&cache.dropped).values().all(|times| *times == 1) && entries == ["hours"];
    }
    for node in nodes {
        node.shutdown(delay!("5s")).await;
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
