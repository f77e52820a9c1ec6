//! What a link that counts costs the server, and what it keeps there.

use dq::job::NodeId;
use dq::store::step::Change;
use dq::store::{MAX_MINUTES, MinuteCounts, Store, StoreError};
use dq_tests::redis::{RedisServer, ask};

use super::cost::{Calls, counted};
use super::topic::{Topic, generated, job};

const KEY: &str = "dq:{shop:t}:statistics";

fn counting(server: &RedisServer) -> Topic {
    let mut topic = Topic::on(&server.url());
    topic.link = topic.store.link_with(
        &topic.key,
        &NodeId::new("n"),
        dq::store::LinkOptions { counts: true, ..Default::default() },
    );
    topic
}

/// The present minute of the server's clock.
async fn minute(topic: &Topic) -> u64 {
    topic.store.counts(&topic.key).await.unwrap().clock.as_millis() / 60_000
}

async fn statistics(topic: &Topic) -> Vec<MinuteCounts> {
    let to = minute(topic).await;
    topic.store.statistics(&topic.key, to + 1 - MAX_MINUTES, to).await.unwrap()
}

/// What the claim and the ack of a hundred jobs cost, each in the second of two such lives.
async fn life(server: &RedisServer, topic: &Topic) -> [Calls; 2] {
    topic.reconcile().await;
    let mut costs = [Calls::new(), Calls::new()];
    for _ in 0..2 {
        topic.add((0..100).map(generated).collect()).await;
        topic.ready().await;
        let (transferred, claim) = counted(server, topic.try_transfer(1_000)).await;
        let claims = transferred.unwrap().claims;
        assert_eq!(claims.len(), 100);
        let (settled, ack) = counted(server, topic.try_settle(&claims, Change::Ack)).await;
        settled.unwrap();
        costs = [claim, ack];
    }
    costs
}

#[tokio::test]
async fn counting_costs_a_read_and_a_write_a_step_and_not_counting_nothing() {
    let (server, other) = (RedisServer::start(), RedisServer::start());
    let topic = counting(&server);
    let (counts, plain) = (life(&server, &topic).await, life(&other, &Topic::on(&other.url())).await);
    assert_eq!(other.command(&["EXISTS", KEY]), ":0");
    for (step, (mut counts, plain)) in ["transfer", "settle"].into_iter().zip(counts.into_iter().zip(plain)) {
        // A minute may begin between the two lives; a settle of the last rows otherwise needs no clock.
        let (expire, time) = (counts.remove("expire").unwrap_or(0), if step == "settle" { 1 } else { 0 });
        assert!(expire <= 1, "{expire}");
        let mut expected = plain.clone();
        for (name, more) in [("hget", 1), ("hset", 1), ("time", time)] {
            *expected.entry(name.to_owned()).or_default() += more;
        }
        expected.retain(|_, count| *count > 0);
        assert_eq!(counts, expected, "{step}");
    }
    let before = server.command(&["HGETALL", KEY]);
    assert_eq!(topic.try_transfer(10).await.unwrap().claims, []);
    assert_eq!(server.command(&["HGETALL", KEY]), before);
}

#[tokio::test]
async fn statistics_expire_an_hour_after_the_day_is_over() {
    let server = RedisServer::start();
    let topic = counting(&server);
    topic.reconcile().await;
    topic.add(vec![job("a")]).await;
    assert_eq!(topic.claims().await.len(), 1);
    let left: u64 = server.command(&["TTL", KEY]).trim_start_matches(':').parse().unwrap();
    assert!((89_900..=90_000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_day_of_statistics_is_bounded_and_a_minute_takes_the_place_of_that_of_the_day_before() {
    let server = RedisServer::start();
    let topic = counting(&server);
    topic.reconcile().await;
    let now = minute(&topic).await;
    // Every minute of the day before, each with a claim that was 7 ms late.
    let plant = "for n = 0, 1439 do redis.call('HSET', KEYS[1], (ARGV[1] - n) % 1440, struct.pack( \
        '<I4I4I4I4I4I4I8I6I4I4I4I4I4I4I4I4', ARGV[1] - n, 1, 0, 0, 0, 0, 7, 7, 1, 0, 0, 0, 0, 0, 0, 0)) end";
    ask(&mut server.connect(), &["EVAL", plant, "1", KEY, &(now - MAX_MINUTES).to_string()]);
    assert_eq!(statistics(&topic).await, []);
    let earlier = topic.store.statistics(&topic.key, now - 2 * MAX_MINUTES + 1, now - MAX_MINUTES).await.unwrap();
    let late = [1, 0, 0, 0, 0, 0, 0, 0];
    let planted = MinuteCounts { claimed: 1, late_sum: 7, late_most: 7, late, ..MinuteCounts::default() };
    assert_eq!(earlier.len(), 1_440);
    assert!(earlier.iter().all(|counts| *counts == MinuteCounts { minute: counts.minute, ..planted }), "{earlier:?}");
    topic.add(vec![job("a")]).await;
    let claims = topic.claims().await;
    topic.try_settle(&claims, Change::Ack).await.unwrap();
    let counted = statistics(&topic).await;
    assert_eq!(
        counted.iter().map(|counts| (counts.claimed, counts.done)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (1, 1)
    );
    assert_eq!(server.command(&["HLEN", KEY]), ":1440");
    let bytes: u64 = server.command(&["MEMORY", "USAGE", KEY, "SAMPLES", "0"]).trim_start_matches(':').parse().unwrap();
    // 74 bytes of each minute, and what the server takes to keep them.
    assert!((1_440 * 74..200 << 10).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn what_another_program_wrote_into_the_ring_is_no_minute_and_makes_room() {
    let server = RedisServer::start();
    let topic = counting(&server);
    topic.reconcile().await;
    let plant = "for n = 0, 1439 do redis.call('HSET', KEYS[1], n, 'by hand') end";
    ask(&mut server.connect(), &["EVAL", plant, "1", KEY]);
    assert_eq!(statistics(&topic).await, []);
    topic.add(vec![job("a")]).await;
    assert_eq!(topic.claims().await.len(), 1);
    assert_eq!(statistics(&topic).await.iter().map(|counts| counts.claimed).sum::<u64>(), 1);
}

#[tokio::test]
async fn a_key_of_a_wrong_type_stops_the_links_that_count_before_they_change_anything() {
    let server = RedisServer::start();
    let topic = counting(&server);
    topic.reconcile().await;
    topic.add(vec![job("a")]).await;
    topic.ready().await;
    server.command(&["SET", KEY, "mine"]);
    let refused = topic.try_transfer(10).await;
    assert!(matches!(&refused, Err(StoreError::WrongType { key, .. }) if key == KEY), "{refused:?}");
    assert_eq!(topic.store.counts(&topic.key).await.unwrap().delayed, 1);
    server.command(&["DEL", KEY]);
    assert_eq!(topic.claims().await.len(), 1);
}
