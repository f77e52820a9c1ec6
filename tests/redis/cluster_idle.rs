//! What a node with fifty topics costs a cluster, in commands and connections.

use std::sync::Arc;
use std::time::Duration;

use dq::environment::TokioClock;
use dq::prelude::*;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq::testing::Harness;
use dq_tests::redis::{ClusterServers, Keyspace, RedisServer};
use dq_tests::{Monitor, PacedStore, topics};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::cluster::clients;
use super::topic::until;

const SECOND: Duration = Duration::from_secs(1);

/// Longer than any answer takes.
const LIMIT: Duration = Duration::from_secs(20);

topics!(
    fifty_topics: t1 T1 "t1", t2 T2 "t2", t3 T3 "t3", t4 T4 "t4", t5 T5 "t5", t6 T6 "t6", t7 T7 "t7", t8 T8 "t8",
    t9 T9 "t9", t10 T10 "t10", t11 T11 "t11", t12 T12 "t12", t13 T13 "t13", t14 T14 "t14", t15 T15 "t15",
    t16 T16 "t16", t17 T17 "t17", t18 T18 "t18", t19 T19 "t19", t20 T20 "t20", t21 T21 "t21", t22 T22 "t22",
    t23 T23 "t23", t24 T24 "t24", t25 T25 "t25", t26 T26 "t26", t27 T27 "t27", t28 T28 "t28", t29 T29 "t29",
    t30 T30 "t30", t31 T31 "t31", t32 T32 "t32", t33 T33 "t33", t34 T34 "t34", t35 T35 "t35", t36 T36 "t36",
    t37 T37 "t37", t38 T38 "t38", t39 T39 "t39", t40 T40 "t40", t41 T41 "t41", t42 T42 "t42", t43 T43 "t43",
    t44 T44 "t44", t45 T45 "t45", t46 T46 "t46", t47 T47 "t47", t48 T48 "t48", t49 T49 "t49", t50 T50 "t50",
);

/// The commands that a node sends in ten minutes to these servers.
async fn commands_of_an_idle_node(keyspace: Keyspace, servers: &[RedisServer]) -> Vec<usize> {
    let store = PacedStore::within(keyspace, Arc::new(TokioClock::new()));
    let dq = Harness::start_on(store, 1, fifty_topics).await;
    dq.advance(60 * SECOND).await;
    let mut monitors: Vec<_> = servers.iter().map(Monitor::start).collect();
    dq.advance(600 * SECOND).await;
    let counted = servers.iter().zip(&mut monitors).map(|(server, monitor)| {
        server.command(&["ECHO", "the end"]);
        let seen = monitor.until("the end");
        let other = seen.iter().find(|line| !line.contains("\"EVALSHA\""));
        assert_eq!(other, None);
        seen.len()
    });
    counted.collect()
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_sends_a_cluster_no_more_commands_than_one_server() {
    let (server, cluster) = ([RedisServer::start()], ClusterServers::start());
    let on_one = commands_of_an_idle_node(Keyspace::on_shared_server(server[0].url()), &server).await;
    let on_cluster = commands_of_an_idle_node(Keyspace::on_shared_server(cluster.url()), &cluster.servers).await;
    println!("{on_one:?} commands in ten minutes of an idle node with fifty topics, and {on_cluster:?} to a cluster");
    assert!(on_cluster.iter().all(|count| *count > 0));
    let (one, all): (usize, usize) = (on_one.iter().sum(), on_cluster.iter().sum());
    assert!(all <= one + one / 100, "{all} commands to the cluster, and {one} to one server");
}

/// The connections to each of these servers that a node has while it adds to fifty topics. Returns once it has three at most to each.
async fn connections(url: &str, servers: &[RedisServer]) -> Vec<usize> {
    let store = RedisStore::new(url).unwrap().with_check_period(4 * SECOND);
    let factory = ContextFactory::new("idle").without_inventory().variables([("", ""); 0]);
    // On a busy machine an answer that is late retires its line, and a new one comes beside it.
    let factory = factory.lease(15 * LIMIT).call_timeout(LIMIT).call_deadline(2 * LIMIT);
    let dq = fifty_topics(factory.store(Arc::new(store) as Arc<dyn Store>)).start().await.unwrap();
    dq.ready().await;
    let counts = || servers.iter().map(clients).collect::<Vec<_>>();
    let topics: Vec<_> = TOPICS.iter().map(|topic| dq.provider().topic(topic).unwrap()).collect();
    for _ in 0..20 {
        let adds = topics.iter().map(|topic| topic.add_many_json([serde_json::Value::Null]).into_future());
        join_all(adds).await.into_iter().for_each(|added| drop(added.unwrap().all().unwrap()));
    }
    let busy = counts();
    let idle = until(|| counts().iter().all(|count| *count <= 3));
    timeout(3 * LIMIT, idle).await.expect("the lines close");
    dq.shutdown(SECOND).await;
    busy
}

/// At most: four lines for its topics, one for renewals and one for wake-ups; and on the runtime of the program and on dq's own, where coalescers go
/// while the machine is busy, four for what it adds and one for queries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_node_has_no_more_connections_to_each_server_of_a_cluster_than_to_one_and_an_idle_one_has_three() {
    let (server, cluster) = ([RedisServer::start()], ClusterServers::start());
    let (one, url) = (server[0].url(), cluster.url());
    let (on_one, on_cluster) = tokio::join!(connections(&one, &server), connections(&url, &cluster.servers));
    println!("{on_one:?} connections of a busy node with fifty topics, and {on_cluster:?} to a cluster");
    assert!(on_one.iter().chain(&on_cluster).all(|count| (4..=16).contains(count)));
}
