//! What callers who wait for results cost the server.

use std::time::Duration;

use dq::job::{KeptState, Metadata};
use dq::store::step::{Change, DEFAULT_BYTES, Outcome, Settle};
use dq_tests::redis::RedisServer;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::topic::{LEASE, Topic, provider};

const CALLERS: usize = 10_000;

/// How many subscribers the moves of the topic have, and how many connections subscribe to anything.
fn subscriptions(server: &RedisServer, topic: &Topic) -> (String, usize) {
    let channel = format!("dq:{{{}}}:events", topic.key);
    let subscribers = server.command(&["EVAL", "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]", "0", &channel]);
    let list = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    (subscribers, list.lines().filter(|line| line.contains("id=")).count())
}

/// Acks all waiting jobs, each with its payload as result.
async fn ack_all(topic: &Topic) -> usize {
    let claims = topic.claims().await;
    let outcome = |claim: &dq::store::step::Claim| {
        let (_, payload) = claim.record.payload().unwrap();
        let result = Some(KeptState::from_bytes(payload));
        let metadata = Metadata { result, retain: Duration::from_secs(3_600), ..claim.record.metadata().unwrap() };
        Outcome { metadata: Some(metadata), ..claim.outcome(Change::Ack) }
    };
    let outcomes = claims.iter().map(outcome).collect();
    let request = Settle { last_seen: topic.last_seen(), lease: LEASE, bytes: DEFAULT_BYTES, outcomes };
    topic.link.step(request).await.unwrap();
    claims.len()
}

#[tokio::test]
async fn ten_thousand_callers_wait_for_results_with_one_subscription() {
    let (server, topic) = Topic::entered().await;
    let provider = provider(&server.url());
    let jobs = provider.topic(topic.key.topic.as_str()).unwrap();
    assert_eq!(subscriptions(&server, &topic), (":0".to_owned(), 0));
    for first in (0..CALLERS).step_by(1_000) {
        let adds = (first..first + 1_000).map(|n| jobs.add_json(json!(n)).id(n.to_string()));
        futures_util::future::try_join_all(adds).await.unwrap();
    }
    let call = |n: usize| {
        let waited = jobs.result::<usize>(n.to_string()).within("10m");
        async move { (n, waited.await) }
    };
    let mut waits: FuturesUnordered<_> = (0..CALLERS).map(call).collect();
    // The first poll of each hands it to the task; none is ready before its job ends.
    assert!(futures_util::poll!(waits.next()).is_pending());
    while subscriptions(&server, &topic).0 == ":0" {
        assert!(futures_util::poll!(waits.next()).is_pending());
        tokio::task::yield_now().await;
    }
    assert_eq!(subscriptions(&server, &topic), (":1".to_owned(), 1));
    let acks = async {
        let mut acked = 0;
        while acked < CALLERS {
            acked += ack_all(&topic).await;
        }
        subscriptions(&server, &topic)
    };
    let results = async {
        for _ in 0..CALLERS {
            let (n, result) = waits.next().await.expect("each caller is answered");
            assert_eq!(result.unwrap(), n);
        }
    };
    let (meanwhile, ()) = tokio::join!(acks, results);
    assert_eq!(meanwhile, (":1".to_owned(), 1));
}
