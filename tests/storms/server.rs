//! A Redis server that writes every command to disk before it answers, and what the storm does to it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dq_tests::redis::RedisServer;
use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::ledger::{Entry, Ledger, now};

/// The server of a storm.
#[derive(Debug, Clone)]
pub struct Server(Arc<Mutex<RedisServer>>);

impl Server {
    /// Starts a server, which keeps nothing on disk if it `forgets`.
    pub fn start(forgets: bool) -> Self {
        let append = if forgets { "no" } else { "yes" };
        let settings = ["--save", "", "--appendonly", append, "--appendfsync", "always"];
        Self(Arc::new(Mutex::new(RedisServer::start_with(&settings))))
    }

    /// The port of the server, which stays the same.
    pub fn port(&self) -> u16 {
        self.with(|server| server.port())
    }

    /// The URL of the server itself.
    pub fn url(&self) -> String {
        self.with(|server| server.url())
    }

    fn with<T>(&self, act: impl FnOnce(&mut RedisServer) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Kills the server and starts it again, or stops it for a while, until the storm is over. It is killed first.
    pub async fn suffer(self, ledger: Arc<Ledger>, mut rng: Rng, mean: Duration, mut over: watch::Receiver<bool>) {
        let mean = u64::try_from(mean.as_millis()).unwrap_or(u64::MAX);
        let mut is_first = true;
        loop {
            let pause = Duration::from_millis(rng.u64(mean / 2..mean * 3 / 2));
            if timeout(pause, over.wait_for(|over| *over)).await.is_ok() {
                return;
            }
            let (since, down) = (now(), Duration::from_millis(rng.u64(0..2_000)));
            let what = if rng.u32(0..3) > 0 || is_first {
                self.with(RedisServer::kill);
                tokio::time::sleep_until(tokio::time::Instant::now() + down).await;
                tokio::task::block_in_place(|| self.with(RedisServer::restart));
                "restarted"
            } else {
                self.with(|server| server.pause());
                tokio::time::sleep_until(tokio::time::Instant::now() + down * 2).await;
                self.with(|server| server.go_on());
                "stalled"
            };
            is_first = false;
            ledger.note(Entry::Event { target: "store".into(), what: what.into(), from: since, to: now() });
        }
    }
}
