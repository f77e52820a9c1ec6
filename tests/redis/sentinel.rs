//! A master that fails, behind sentinels: nodes and producers go to the next one.

use std::time::Duration;

use dq::provider::Added;
use dq::store::Durability;
use dq_tests::redis::{RedisServer, SentinelServers};
use dq_tests::{Count, NodeProcess, RunLog};

use super::cluster::{SHORT, add};
use super::topic::factory;

const JOBS: u64 = 300;

/// The master ends in this way while a node runs jobs and a producer adds them: every confirmed job runs, on the next master.
async fn a_failover(end: impl FnOnce(&mut RedisServer)) {
    let (mut servers, log) = (SentinelServers::start(), RunLog::default());
    let node = NodeProcess::start(env!("CARGO_BIN_EXE_node"), &servers.url(), &SHORT, 1_000, "one", &log).await;
    let durability = Durability::Wait { replicas: 1, timeout: Duration::from_millis(200) };
    let adder = factory(&servers.url()).without_listeners().durability(durability).start().await.unwrap();
    add(&adder, 0..JOBS / 3).await;
    let before = servers.master().port();
    end(servers.master());
    add(&adder, JOBS / 3..JOBS).await;
    log.until(|runs| runs.of_job.len() as u64 == JOBS).await;
    assert_ne!(servers.master().port(), before);
    assert!(node.stop().await.0.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_and_producers_follow_the_master_when_it_is_killed() {
    a_failover(RedisServer::kill).await;
}

/// Its connections stay open, and nothing answers any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_silent_and_keeps_its_connections_is_given_up() {
    a_failover(|master| master.pause()).await;
}

#[tokio::test]
async fn a_service_that_the_sentinels_do_not_know_is_named() {
    let servers = SentinelServers::start();
    let url = servers.url().replace("/shop", "/chop");
    let error = dq::Provider::connect("shop", &*url).await.unwrap_err().to_string();
    assert!(
        error.contains("cannot be reached: no sentinel names a master: the sentinels know no service `chop`"),
        "{error}"
    );
}

/// One sentinel is enough for a start, and a URL that names others that do not exist.
#[tokio::test]
async fn one_sentinel_of_three_that_answers_names_the_master() {
    let servers = SentinelServers::start();
    let url = servers.url();
    let (one, rest) = url.split_once(',').unwrap();
    let url = format!("{one},127.0.0.1:1,127.0.0.1:2/{}", rest.rsplit_once('/').unwrap().1);
    let provider = dq::Provider::connect("shop", &*url).await.unwrap();
    assert!(matches!(provider.add(Count { n: 1 }).await.unwrap(), Added { .. }));
}
