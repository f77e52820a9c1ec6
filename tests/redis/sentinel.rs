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

/// The URL with the first sentinels of these servers only, and others that do not exist in the places of the rest.
fn url_of_first(servers: &SentinelServers, first: usize) -> String {
    let url = servers.url();
    let (hosts, service) = url.rsplit_once('/').unwrap();
    let silent = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
    let hosts: Vec<_> = hosts.split(',').take(first).chain(silent.into_iter().take(3 - first)).collect();
    format!("{}/{service}", hosts.join(","))
}

#[tokio::test]
async fn two_sentinels_of_three_that_answer_name_the_master() {
    let servers = SentinelServers::start();
    let provider = dq::Provider::connect("shop", &*url_of_first(&servers, 2)).await.unwrap();
    assert!(matches!(provider.add(Count { n: 1 }).await.unwrap(), Added { .. }));
}

#[tokio::test]
async fn a_first_start_with_one_sentinel_of_three_says_who_did_not_answer() {
    let servers = SentinelServers::start();
    let error = dq::Provider::connect("shop", &*url_of_first(&servers, 1)).await.unwrap_err().to_string();
    let says = "1 of 3 sentinels name the same master, and more than half of them must; no answer in time from 127.0.0.1:1, \
                127.0.0.1:2";
    assert!(error.contains(says), "{error}");
}

#[tokio::test]
async fn one_sentinel_of_three_confirms_the_server_that_was_used_last() {
    let mut servers = SentinelServers::start();
    let provider = dq::Provider::connect("shop", &*servers.url()).await.unwrap();
    assert!(matches!(provider.add(Count { n: 1 }).await.unwrap(), Added { .. }));
    servers.kill_sentinels(2);
    // Every connection of the provider is gone, so the next request makes a new one.
    servers.known_master().command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert!(matches!(provider.add(Count { n: 2 }).await.unwrap(), Added { .. }));
}
