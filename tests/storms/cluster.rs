//! What the storm does to a cluster: it kills masters, and moves slots from one to another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq_tests::redis::ClusterServers;
use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep_until, timeout};

use crate::ledger::{Entry, Ledger, now};
use crate::process::APP;
use crate::process::work::Kind;
use crate::server::{FAILED_OVER, note, with};

/// From one move of a slot to the next. After each second move a master is killed.
const MOVE_PERIOD: Duration = Duration::from_secs(10);

/// How often the storm looks whether the cluster has settled.
const LOOK: Duration = Duration::from_millis(50);

/// How long that may take.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// Moves slots and kills masters until the storm is over. A master that was killed comes back as a replica once another one has its place.
pub async fn suffer(
    cluster: Arc<Mutex<ClusterServers>>,
    ledger: Arc<Ledger>,
    mut rng: Rng,
    mut over: watch::Receiver<bool>,
) {
    let mut seen = (now(), with(&cluster, |cluster| cluster.masters()));
    let mut kills = false;
    while timeout(MOVE_PERIOD, over.wait_for(|over| *over)).await.is_err() {
        let key = key(&mut rng);
        until(&cluster, |cluster| cluster.is_whole(&key)).await;
        // A busy machine can keep a master from answering the others for so long that they take it for dead.
        if with(&cluster, |cluster| cluster.masters()) != seen.1 {
            note(&ledger, FAILED_OVER, seen.0);
        }
        move_slot(&cluster, &key, &mut rng, &ledger).await;
        if kills {
            fail_over(&cluster, &self::key(&mut rng), &ledger).await;
        }
        kills = !kills;
        seen = (now(), with(&cluster, |cluster| cluster.masters()));
    }
}

/// A key in the slot of a topic, or of the directory of topics.
fn key(rng: &mut Rng) -> String {
    match rng.usize(..=Kind::ALL.len()) {
        0 => format!("dq:{{{APP}}}:topics"),
        n => format!("dq:{{{APP}:{}}}:meta", Kind::ALL[n - 1].topic()),
    }
}

/// Waits until something is so.
async fn until(cluster: &Mutex<ClusterServers>, is_so: impl Fn(&ClusterServers) -> bool) {
    let began = Instant::now();
    while !block_in_place(|| with(cluster, |cluster| is_so(cluster))) {
        assert!(began.elapsed() < SETTLES_WITHIN, "the cluster has not settled for a minute");
        sleep_until(Instant::now() + LOOK).await;
    }
}

/// Moves the slot of this key to another master. That explains nothing: no job runs twice because its topic has moved.
async fn move_slot(cluster: &Mutex<ClusterServers>, key: &str, rng: &mut Rng, ledger: &Ledger) {
    let from = now();
    block_in_place(|| {
        with(cluster, |cluster| {
            let owner = cluster.owner(key);
            let others: Vec<_> = cluster.masters().into_iter().filter(|place| *place != owner).collect();
            let next = others[rng.usize(..others.len())];
            cluster.move_slot(key, next);
            // Otherwise a failover could lose what the move has brought.
            cluster.replicate(next, key);
        });
    });
    ledger.note(Entry::Event { target: "slot".into(), what: "moved".into(), from, to: now() });
    until(cluster, |cluster| cluster.is_whole(key)).await;
}

/// Kills the master that has this key. It comes back as a replica once another one has the key.
async fn fail_over(cluster: &Mutex<ClusterServers>, key: &str, ledger: &Ledger) {
    let from = now();
    let killed = block_in_place(|| {
        with(cluster, |cluster| {
            let killed = cluster.owner(key);
            cluster.servers[killed].kill();
            killed
        })
    });
    until(cluster, |cluster| cluster.serving(key).is_some()).await;
    block_in_place(|| with(cluster, |cluster| cluster.servers[killed].restart()));
    note(ledger, FAILED_OVER, from);
    until(cluster, |cluster| cluster.is_whole(key)).await;
}
