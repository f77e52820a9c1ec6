//! The store of a storm: a Redis server that writes every command to disk before it answers, a master with a replica, behind sentinels, or a
//! cluster; and what the storm does to it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dq_tests::redis::{ClusterServers, RedisServer, SentinelServers};
use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cluster;
use crate::ledger::{Entry, Ledger, now};

/// From one failover to the next.
const FAILOVER_PERIOD: Duration = Duration::from_secs(20);

/// What the ledger calls a failover.
pub const FAILED_OVER: &str = "failed over";

/// The server of a storm.
#[derive(Debug, Clone)]
pub enum Server {
    /// One server.
    One(Arc<Mutex<RedisServer>>),
    /// A master, a replica and three sentinels.
    Sentinels(Arc<Mutex<SentinelServers>>),
    /// Three masters with a replica each.
    Cluster(Arc<Mutex<ClusterServers>>),
}

/// Does something with a server.
pub fn with<S, T>(server: &Mutex<S>, act: impl FnOnce(&mut S) -> T) -> T {
    act(&mut server.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Server {
    /// Starts a server, which keeps nothing on disk if it `forgets`.
    pub fn start(forgets: bool) -> Self {
        let append = if forgets { "no" } else { "yes" };
        let settings = ["--save", "", "--appendonly", append, "--appendfsync", "always"];
        Self::One(Arc::new(Mutex::new(RedisServer::start_with(&settings))))
    }

    /// Starts servers and their sentinels.
    pub fn behind_sentinels() -> Self {
        Self::Sentinels(Arc::new(Mutex::new(SentinelServers::start_with(1, 2_000))))
    }

    /// Starts a cluster.
    pub fn of_a_cluster() -> Self {
        Self::Cluster(Arc::new(Mutex::new(ClusterServers::start_with_replicas())))
    }

    /// The port of the server, which stays the same if it is one.
    pub fn port(&self) -> u16 {
        match self {
            Self::One(server) => with(server, |server| server.port()),
            Self::Sentinels(servers) => with(servers, |servers| servers.master().port()),
            Self::Cluster(servers) => with(servers, |servers| servers.servers[0].port()),
        }
    }

    /// The URL of the store itself.
    pub fn url(&self) -> String {
        match self {
            Self::One(server) => with(server, |server| server.url()),
            Self::Sentinels(servers) => with(servers, |servers| servers.url()),
            Self::Cluster(servers) => with(servers, |servers| servers.url()),
        }
    }

    /// Harms the store until the storm is over.
    pub async fn suffer(self, ledger: Arc<Ledger>, rng: Rng, mean: Duration, over: watch::Receiver<bool>) {
        match self {
            Self::One(server) => suffer(server, ledger, rng, mean, over).await,
            Self::Sentinels(servers) => fail_over(servers, ledger, over).await,
            Self::Cluster(servers) => cluster::suffer(servers, ledger, rng, over).await,
        }
    }
}

/// Notes what happened to the store.
pub fn note(ledger: &Ledger, what: &str, from: u64) {
    ledger.note(Entry::Event { target: "store".into(), what: what.into(), from, to: now() });
}

/// Kills the master again and again. It comes back as a replica once another one has taken its place.
async fn fail_over(servers: Arc<Mutex<SentinelServers>>, ledger: Arc<Ledger>, mut over: watch::Receiver<bool>) {
    while timeout(FAILOVER_PERIOD, over.wait_for(|over| *over)).await.is_err() {
        let since = now();
        let servers = Arc::clone(&servers);
        let failed_over = tokio::task::spawn_blocking(move || with(&servers, SentinelServers::fail_over));
        failed_over.await.expect("a replica becomes the master");
        note(&ledger, FAILED_OVER, since);
    }
}

/// Kills the server and starts it again, or stops it for a while, until the storm is over. It is killed first.
async fn suffer(
    server: Arc<Mutex<RedisServer>>,
    ledger: Arc<Ledger>,
    mut rng: Rng,
    mean: Duration,
    mut over: watch::Receiver<bool>,
) {
    let mean = u64::try_from(mean.as_millis()).unwrap_or(u64::MAX);
    let mut is_first = true;
    loop {
        let pause = Duration::from_millis(rng.u64(mean / 2..mean * 3 / 2));
        if timeout(pause, over.wait_for(|over| *over)).await.is_ok() {
            return;
        }
        let (since, down) = (now(), Duration::from_millis(rng.u64(0..2_000)));
        let what = if rng.u32(0..3) > 0 || is_first {
            with(&server, RedisServer::kill);
            tokio::time::sleep_until(tokio::time::Instant::now() + down).await;
            tokio::task::block_in_place(|| with(&server, RedisServer::restart));
            "restarted"
        } else {
            with(&server, |server| server.pause());
            tokio::time::sleep_until(tokio::time::Instant::now() + down * 2).await;
            with(&server, |server| server.go_on());
            "stalled"
        };
        is_first = false;
        note(&ledger, what, since);
    }
}
