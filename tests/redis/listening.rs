//! Events cost nothing while nobody listens, and one message for each step while somebody does.

use dq::provider::{Event, Transition};
use dq::store::step::Change;
use dq::store::{Interest, Store};
use dq_tests::redis::RedisServer;

use super::cost::{Calls, counted, spent, total};
use super::topic::{Topic, generated, provider};

/// The commands of adding, claiming and acking 20 jobs.
async fn life(server: &RedisServer, topic: &Topic) -> [Calls; 3] {
    let add = spent(server, topic.add((0..20).map(generated).collect())).await;
    topic.ready().await;
    let (transferred, transfer) = counted(server, topic.try_transfer(1_000)).await;
    let (settled, settle) = counted(server, topic.try_settle(&transferred.unwrap().claims, Change::Ack)).await;
    settled.unwrap();
    [add, transfer, settle]
}

#[tokio::test]
async fn a_step_executes_no_command_more_while_nobody_listens() {
    let (server, topic) = Topic::entered().await;
    life(&server, &topic).await;
    let before = life(&server, &topic).await;
    let interest = Interest { node: None, broadcasts: false, moves: true };
    let listener = topic.store.signals(&topic.key, interest).await.unwrap();
    topic.store.listen(&topic.key).await.unwrap();
    let meanwhile = life(&server, &topic).await;
    for (listened, free) in meanwhile.iter().zip(&before) {
        let clocks = listened.get("time").unwrap_or(&0) - free.get("time").unwrap_or(&0);
        assert_eq!(total(listened), total(free) + 1 + clocks, "one message: {listened:?}, {free:?}");
        assert!(clocks <= 1, "{listened:?}, {free:?}");
    }
    drop(listener);
    let key = format!("dq:{{{}}}:meta", topic.key);
    server.command(&["HSET", &key, "events", "1"]);
    life(&server, &topic).await;
    assert_eq!(life(&server, &topic).await, before, "the field of a listener that is gone costs nothing");
}

#[tokio::test]
async fn a_stream_goes_on_after_its_connection_broke() {
    let (server, topic) = Topic::served();
    let mut events = provider(&server.url()).events(topic.key.topic.as_str()).unwrap();
    assert_eq!(events.next().await, Some(Event::Listening));
    topic.add(vec![generated(1)]).await;
    let added = events.next().await;
    assert!(matches!(added, Some(Event::Job { what: Transition::Added { .. }, .. })), "{added:?}");
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    let again = events.next().await;
    assert_eq!(again, Some(Event::Listening), "it says that events may be missing");
    topic.add(vec![generated(2)]).await;
    assert!(matches!(events.next().await, Some(Event::Job { .. })));
}
