//! The histories of jobs (rule 31): how many there are, and what a key of another program in their place does.

use std::time::Duration;

use dq::store::step::Change;
use dq::store::{CommandKind, HistorySetting, Store};
use dq_tests::redis::RedisServer;

use super::topic::{Topic, id, job};

const HOUR: Duration = Duration::from_secs(3_600);

/// The histories of ARGV[1] jobs that are gone, to be forgotten in a minute, in their order.
const GONE: &str = "local time = redis.call('TIME')[1] * 1000 + 60000
for n = 1, ARGV[1] do
  redis.call('HSET', KEYS[1], 'gone-' .. n, 'k\\t1\\t\\t\\n')
  redis.call('ZADD', KEYS[2], string.format('%d', time + n), 'gone-' .. n)
end
return 1";

async fn topic_with_histories(server: &RedisServer) -> Topic {
    let topic = Topic::on(&server.url());
    topic.store.keep_history(&topic.key, HistorySetting { moves: 5, after: HOUR }).await.unwrap();
    topic
}

#[tokio::test]
async fn of_jobs_that_are_gone_a_topic_keeps_a_hundred_thousand_histories() {
    let server = RedisServer::start();
    let topic = topic_with_histories(&server).await;
    let keys = ["dq:{shop:t}:history", "dq:{shop:t}:history-ends"];
    server.command(&["EVAL", GONE, "2", keys[0], keys[1], "100600"]);
    topic.add(vec![job("a"), job("stays")]).await;
    assert!(topic.command(CommandKind::Delete, "a").await.changed);
    assert_eq!(server.command(&["ZCARD", keys[1]]), ":100000");
    assert_eq!(server.command(&["HLEN", keys[0]]), ":100001");
    for (name, is_kept) in [("gone-1", false), ("gone-601", false), ("gone-602", true), ("a", true), ("stays", true)] {
        assert_eq!(topic.store.history(&topic.key, &id(name)).await.unwrap().is_some(), is_kept, "{name}");
    }
}

#[tokio::test]
async fn a_key_of_another_program_in_the_place_of_histories_keeps_no_job_from_running() {
    for key in ["dq:{shop:t}:history", "dq:{shop:t}:history-ends"] {
        let server = RedisServer::start();
        let topic = topic_with_histories(&server).await;
        server.command(&["SET", key, "mine"]);
        topic.reconcile().await;
        topic.add(vec![job("a"), job("b")]).await;
        let claims = topic.claims().await;
        assert_eq!(claims.len(), 2);
        topic.try_settle(&claims, Change::Ack).await.unwrap();
        assert_eq!(topic.store.counts(&topic.key).await.unwrap().running, 0);
        assert_eq!(server.command(&["GET", key]), "mine");
    }
}
