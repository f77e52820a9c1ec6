//! How many connections nodes open, and what the topics of a node that share them do to each other.

use std::sync::Arc;
use std::time::Duration;

use dq::job::{NodeId, ProducerId, Sequence};
use dq::store::redis::RedisStore;
use dq::store::step::{Reconcile, Wake};
use dq::store::{Answer, Link, Numbered, Pending, RequestKind, Store};
use dq_tests::Proxy;
use dq_tests::redis::RedisServer;
use futures_util::future::join_all;
use tokio::time::timeout;

use super::listeners::{PricesListener, add_to_all, ten_topics};

use super::topic::{factory, job, key, until};

/// Longer than anything here takes, and shorter than a line may stay without a request.
const LIMIT: Duration = Duration::from_secs(20);

/// The connections of this type, except that of the question.
fn clients(server: &RedisServer, kind: &str) -> usize {
    let list = server.command(&["CLIENT", "LIST", "TYPE", kind]);
    list.lines().filter(|line| !line.contains("cmd=client")).count()
}

/// A node of ten topics and a broadcast channel has four lines for its topics, one for its channel and its renewals, one
/// for what it adds, one for queries, and one each for wake-ups and broadcasts. With a connection for each link and each
/// producer it had 11 + 10 + 1 and 1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_do_not_grow_with_the_number_of_topics() {
    let server = RedisServer::start();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let factory = factory(&server.url());
        // On a busy machine an answer that is late retires its line, and a new one comes beside it.
        let factory = factory.lease(15 * LIMIT).call_timeout(LIMIT).call_deadline(2 * LIMIT);
        let node = ten_topics(factory).broadcast_listener::<PricesListener>().start().await.unwrap();
        node.ready().await;
        add_to_all(node.provider()).await;
        nodes.push(node);
    }
    assert_eq!((clients(&server, "normal"), clients(&server, "pubsub")), (3 * 8, 3 * 2));
    join_all(nodes.into_iter().map(|node| node.shutdown(Duration::from_secs(1)))).await;
}

#[tokio::test]
async fn two_thousand_topics_are_added_to_over_four_connections() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap();
    let add = |n: u16| {
        let producer = store.producer(&key(&format!("t{n}")), &ProducerId::new("p"));
        async move { producer.add(Numbered { number: 1, items: vec![job("a")] }).await.unwrap() }
    };
    join_all((0..2_000).map(add)).await;
    // And one over which topics enter the directory.
    assert_eq!(clients(&server, "normal"), 4 + 1);
}

/// As many links as lines, and as many more. The server stands still with a request of each in flight.
async fn stand_still(server: &RedisServer, store: &RedisStore) -> Vec<(Arc<dyn Link>, Pending<Answer>)> {
    let links: Vec<_> = (0..8).map(|n| store.link(&key(&format!("t{n}")), &NodeId::new("n"))).collect();
    let reconcile = || Reconcile { last_seen: Sequence(0), after: None, limit: 10 };
    join_all(links.iter().map(|link| link.step(reconcile()))).await;
    assert_eq!(clients(server, "normal"), 4);
    server.pause();
    links.into_iter().map(|link| (link.clone(), link.ask(reconcile().into()))).collect()
}

/// A time-out is that of one topic: the requests of others on the same line are answered.
#[tokio::test]
async fn a_dropped_link_takes_no_answer_of_another_along() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap();
    let mut waiting = stand_still(&server, &store).await;
    drop(waiting.remove(0));
    server.go_on();
    for (_link, answer) in waiting {
        answer.await.expect("the line of a dropped link goes on for the others");
    }
}

/// A link that is dropped with a request in flight retires its line: nobody sends over it any more, and it closes once
/// nobody waits for an answer over it.
#[tokio::test]
async fn a_line_that_was_given_up_closes_with_its_last_request() {
    let server = RedisServer::start();
    let store = RedisStore::new(&server.url()).unwrap();
    let waiting = stand_still(&server, &store).await;
    // Two links share each line, so this gives every line up, and every line is still waited for.
    let (dropped, kept): (Vec<_>, Vec<_>) = waiting.into_iter().enumerate().partition(|(n, _)| *n < 4);
    drop(dropped);
    let new = store.link(&key("new"), &NodeId::new("n"));
    let answer = new.step(Wake);
    server.go_on();
    answer.await.expect("over a new line");
    for (_, (_link, answer)) in kept {
        answer.await.expect("over the old one");
    }
    let closed = until(|| clients(&server, "normal") == 1);
    timeout(LIMIT, closed).await.expect("nobody waits for an answer over the old lines");
}

#[tokio::test]
async fn a_link_knows_for_how_long_its_line_has_been_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server);
    let store = RedisStore::new(&proxy.url()).unwrap();
    let link = store.link(&key("t"), &NodeId::new("n"));
    assert_eq!(link.silent_for(RequestKind::Wake), Some(Duration::ZERO), "nothing is in flight");
    link.step(Wake).await.unwrap();
    proxy.fall_silent();
    let _answer = link.step(Wake);
    let silent = || link.silent_for(RequestKind::Wake).expect("a link on Redis knows");
    until(|| silent() >= Duration::from_millis(50)).await;
}
