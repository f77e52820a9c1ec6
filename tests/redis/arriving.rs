//! Slow links: an answer that is still arriving is not lost, and nothing else waits for it.

use std::time::Duration;

use dq::prelude::*;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_tests::Proxy;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::tls::Authority;
use super::topic::key;

/// Longer than anything here takes, and shorter than a test may take.
const LIMIT: Duration = Duration::from_secs(20);

/// What a link of this file passes in a tenth of a second.
const PIECE: usize = 6_000;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "large")]
struct Large(String);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "small")]
struct Small;

#[delay_listener(register = false, timeout = "none")]
async fn large(job: Job<Large>, ran: &UnboundedSender<usize>) -> Result<(), JobError> {
    Ok(ran.send(job.0.len())?)
}

#[delay_listener(register = false)]
async fn small(_job: Job<Small>, ran: &UnboundedSender<usize>) -> Result<(), JobError> {
    Ok(ran.send(0)?)
}

/// A node that gives a request up after a second of silence, and whose lease lasts two.
async fn node(url: String) -> (Context, UnboundedReceiver<usize>) {
    let (sender, ran) = unbounded_channel();
    let short = [("DQ_CALL_TIMEOUT", "1s"), ("DQ_LEASE", "2s"), ("DQ_HEARTBEAT_INTERVAL", "400ms")];
    let factory = ContextFactory::new("shop").store(url).variables(short).without_inventory();
    let node = factory.listener::<large>().listener::<small>().provide(sender).start().await.unwrap();
    node.ready().await;
    (node, ran)
}

/// The jobs that each topic of the node claimed, how often it reconciled, and how many leases it lost.
fn counted(node: &Context) -> Vec<(u64, u64, u64)> {
    let topics = node.health().topics;
    topics.iter().map(|topic| &topic.counters).map(|is| (is.claimed, is.reconciled, is.lease_lost)).collect()
}

/// A job whose claim takes four call timeouts and two leases to arrive runs once. Its node renews the lease meanwhile, so
/// another node leaves it alone, and jobs of another topic do not wait for it.
async fn runs_once(slow: String, fast: String) {
    let size = 40 * PIECE;
    let (node, mut ran) = node(slow).await;
    let producer = ContextFactory::new("shop").store(fast.clone()).without_listeners().variables([("", ""); 0]);
    let producer = producer.start().await.unwrap();
    producer.provider().add(Large("x".repeat(size))).await.unwrap();
    // Another node could only take what the first one has claimed.
    let store = RedisStore::new(&fast).unwrap();
    while store.counts(&key("large")).await.unwrap().running == 0 {
        tokio::task::yield_now().await;
    }
    let (other, mut ran_there) = self::node(fast).await;
    node.provider().add(Small).await.unwrap();
    let first = tokio::select! { first = ran.recv() => first, first = ran_there.recv() => first };
    assert_eq!(first, Some(0), "the small job overtakes the large one");
    assert_eq!(timeout(LIMIT, ran.recv()).await, Ok(Some(size)));
    assert_eq!(counted(&node)[0], (1, 1, 0), "claimed once, and reconciled at the start only");
    assert_eq!((counted(&other)[0].0, other.health().topics[0].counters.reclaimed), (0, 0));
    node.shutdown(Duration::ZERO).await;
    other.shutdown(Duration::ZERO).await;
    producer.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_job_passes_a_slow_link() {
    let server = RedisServer::start();
    runs_once(Proxy::slow_to(&server, PIECE).url(), server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_job_passes_a_slow_link_under_tls() {
    let authority = Authority::new("slow");
    let server = authority.server("127.0.0.1", false);
    let ca = authority.file("ca.crt");
    let url = |port: u16| format!("rediss://dq:secret@127.0.0.1:{port}/1?ca={ca}");
    runs_once(url(Proxy::slow_to(&server, PIECE).port()), url(server.port())).await;
}
