//! A cluster: topics on several servers, slots that move, and masters that fail.

use std::ops::Range;
use std::time::Duration;

use dq::context::Context;
use dq::store::redis::RedisStore;
use dq::store::{Durability, Store};
use dq_tests::redis::{ClusterServers, RedisServer};
use dq_tests::{Count, NodeProcess, RunLog};

use super::topic::{Topic, factory, generated, interest, job};

const SECOND: Duration = Duration::from_secs(1);

/// A key of the topic that the node processes listen to.
const KEY: &str = "dq:{shop:count}:jobs";

/// The settings of nodes that soon notice a failure.
pub const SHORT: [(&str, &str); 3] = [("DQ_LEASE", "6s"), ("DQ_HEARTBEAT_INTERVAL", "2s"), ("DQ_CALL_TIMEOUT", "1s")];

/// Adds these jobs, each again and again until it is in.
pub async fn add(adder: &Context, jobs: Range<u64>) {
    for n in jobs {
        while let Err(error) = adder.provider().add(Count { n }).keep_existing().within(SECOND).await {
            assert!(error.may_be_repeated(), "{error}");
        }
    }
}

#[tokio::test]
async fn the_jobs_of_a_topic_are_on_the_server_of_its_slot() {
    let cluster = ClusterServers::start();
    let mut used = [false; 3];
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let topic = Topic::named(&cluster.url(), name).opened().await;
        topic.add(vec![job("x")]).await;
        assert_eq!(topic.claims().await.len(), 1);
        let key = format!("dq:{{shop:{name}}}:jobs");
        let owner = cluster.owner(&key);
        assert_eq!(cluster.servers[owner].command(&["HLEN", &key]), ":1");
        used[owner] = true;
    }
    assert_eq!(used, [true; 3]);
}

/// One server of the URL is enough, and a map that is wrong is learned from the answers.
#[tokio::test]
async fn one_server_of_a_cluster_names_the_others() {
    let cluster = ClusterServers::start();
    let url = format!("redis+cluster://127.0.0.1:1,127.0.0.1:{}", cluster.servers[1].port());
    let topic = Topic::on(&url);
    let key = "dq:{shop:t}:jobs";
    topic.store.open(&topic.key).await.unwrap();
    topic.reconcile().await;
    let next = (cluster.owner(key) + 1) % 3;
    cluster.move_slot(key, next);
    let refused = topic.try_add(vec![job("a")]).await.unwrap_err();
    assert!(refused.nothing_done() && refused.is_outage(), "{refused:?}");
    topic.add(vec![job("a")]).await;
    assert_eq!((cluster.owner(key), cluster.servers[next].command(&["HLEN", key])), (next, ":1".into()));
}

/// No node is killed, so each job runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_moves_between_masters_under_load_and_each_job_runs_once() {
    const JOBS: u64 = 600;
    let (cluster, log) = (ClusterServers::start(), RunLog::default());
    let node = NodeProcess::start(env!("CARGO_BIN_EXE_node"), &cluster.url(), &[], JOBS as usize, "one", &log).await;
    let adder = factory(&cluster.url()).without_listeners().start().await.unwrap();
    let moving = tokio::task::spawn_blocking(move || {
        for _ in 0..6 {
            let next = (cluster.owner(KEY) + 1) % 3;
            cluster.move_slot(KEY, next);
        }
        cluster
    });
    let (cluster, ()) = futures_util::future::join(moving, add(&adder, 0..JOBS)).await;
    log.until(|runs| runs.of_job.len() as u64 == JOBS).await;
    assert!(log.runs().of_job.values().all(|count| *count == 1), "{:?}", log.runs().of_job);
    assert!(node.stop().await.0.success());
    drop(cluster);
}

#[tokio::test]
async fn while_a_slot_is_half_moved_nothing_is_done_and_afterwards_everything() {
    let cluster = ClusterServers::start();
    let topic = Topic::on(&cluster.url()).opened().await;
    topic.add((0..10).map(generated).collect()).await;
    let key = "dq:{shop:t}:jobs";
    let half = cluster.begin_to_move(key, (cluster.owner(key) + 1) % 3);
    assert_eq!(half.move_keys(1), 1);
    for _ in 0..3 {
        let errors = [
            topic.try_add(vec![generated(11)]).await.unwrap_err(),
            topic.try_transfer(10).await.unwrap_err(),
            topic.store.counts(&topic.key).await.unwrap_err(),
        ];
        for error in errors {
            assert!(
                error.nothing_done() && error.is_outage() && error.to_string().contains("this is temporary"),
                "{error}"
            );
        }
    }
    half.finish();
    while topic.store.counts(&topic.key).await.is_err() {}
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().delayed, 10);
    assert_eq!(topic.claims().await.len(), 10);
}

#[tokio::test]
async fn a_subscription_ends_when_its_slot_moves_and_the_next_one_is_at_the_new_server() {
    let cluster = ClusterServers::start();
    let topic = Topic::on(&cluster.url()).opened().await;
    let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    let (key, channel) = ("dq:{shop:t}:jobs", "dq:{shop:t}:wake");
    let owner = cluster.owner(key);
    let publish = |at: usize| cluster.servers[at].command(&["PUBLISH", channel, "state"]);
    assert_eq!(publish(owner), ":1");
    signals.next().await.unwrap();
    cluster.move_slot(key, (owner + 1) % 3);
    assert!(topic.store.counts(&topic.key).await.is_err(), "it learns of the move");
    assert_eq!(signals.next().await, None);
    let mut signals = topic.store.signals(&topic.key, interest()).await.unwrap();
    assert_eq!(publish((owner + 1) % 3), ":1");
    signals.next().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_takes_over_from_a_master_that_is_killed_and_no_confirmed_job_is_lost() {
    a_failover(RedisServer::kill).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_of_a_cluster_that_is_silent_and_keeps_its_connections_is_given_up() {
    a_failover(|master| master.pause()).await;
}

async fn a_failover(end: impl FnOnce(&mut RedisServer)) {
    const JOBS: u64 = 200;
    let (mut cluster, log) = (ClusterServers::start_with_replicas(), RunLog::default());
    let node = NodeProcess::start(env!("CARGO_BIN_EXE_node"), &cluster.url(), &SHORT, 10_000, "one", &log).await;
    let durability = Durability::Wait { replicas: 1, timeout: Duration::from_millis(200) };
    let adder = factory(&cluster.url()).without_listeners().durability(durability).start().await.unwrap();
    add(&adder, 0..JOBS / 2).await;
    let before = cluster.owner(KEY);
    end(&mut cluster.servers[before]);
    // Its replica has none of its own, so nothing is confirmed any more.
    let adder = factory(&cluster.url()).without_listeners().start().await.unwrap();
    add(&adder, JOBS / 2..JOBS).await;
    log.until(|runs| runs.of_job.len() as u64 == JOBS).await;
    assert!(node.stop().await.0.success());
}

#[tokio::test]
async fn the_url_of_another_kind_of_server_is_named() {
    let (server, cluster) = (RedisServer::start(), ClusterServers::start());
    let plain = server.url().replace("redis://", "redis+cluster://");
    let error = dq::Provider::connect("shop", &*plain).await.unwrap_err().to_string();
    assert!(error.contains("cluster support disabled (write redis:// in the URL)"), "{error}");
    let mut named = 0;
    for server in &cluster.servers {
        let topic = Topic::on(&server.url());
        if let Err(error) = topic.try_add(vec![job("a")]).await {
            let text = error.to_string();
            assert!(text.contains("the server belongs to a cluster: write redis+cluster:// in the URL"), "{text}");
            named += 1;
        }
    }
    assert_eq!(named, 2);
}

/// How many connections a server has.
pub fn clients(server: &RedisServer) -> usize {
    let list = server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
    let subscribed = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    // This one too.
    list.lines().count() + subscribed.lines().count() - 1
}

#[tokio::test]
async fn a_busy_topic_opens_connections_to_its_own_server_only() {
    let cluster = ClusterServers::start();
    let store = RedisStore::new(&cluster.url()).unwrap();
    let _topic = Topic::of(store, "t").opened().await;
    let owner = cluster.owner("dq:{shop:t}:jobs");
    let others: Vec<_> = (0..3).filter(|place| *place != owner).collect();
    let of_owner = clients(&cluster.servers[owner]);
    assert!((1..=3).contains(&of_owner), "{of_owner}");
    // At the start the settings of each server are read.
    assert!(others.iter().all(|place| clients(&cluster.servers[*place]) <= 1));
}
