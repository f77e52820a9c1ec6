//! The store and the node work at the same time: what a claim lets the node ask for next is on the wire before it starts the handlers of
//! that claim. A server that answers slowly would wait for them otherwise.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use dq::prelude::*;
use dq::store::Store;
use dq::store::redis::RedisStore;
use dq_tests::redis::RedisServer;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

const JOBS: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// The bytes of a transfer were written to a socket.
    Transfer,
    /// So many bytes of an answer were read.
    Answer(usize),
    /// A handler has started.
    Start,
}

/// What happened, in order, and how many handlers have ended.
#[derive(Debug, Clone, Default)]
struct Log {
    seen: Arc<Mutex<Vec<Seen>>>,
    ended: Arc<AtomicUsize>,
    all_ended: Arc<Notify>,
}

impl Log {
    fn note(&self, seen: Seen) {
        self.seen.lock().unwrap().push(seen);
    }
}

/// A connection to the server whose reads and writes are noted.
struct Noted(TcpStream, Log);

/// The key of the due index is the second key of a transfer, and no other step of a node has it there.
fn has_transfer(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes)
        .split("\r\n")
        .collect::<Vec<_>>()
        .windows(3)
        .any(|three| three[0].ends_with(":jobs") && three[2].ends_with(":delayed"))
        && String::from_utf8_lossy(bytes).contains(":far-jobs")
        && !String::from_utf8_lossy(bytes).contains(":pending")
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if has_transfer(bytes) {
            self.1.note(Seen::Transfer);
        }
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl AsyncRead for Noted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.0).poll_read(cx, buffer);
        let read = buffer.filled().len() - before;
        if read > 1_024 {
            self.1.note(Seen::Answer(read));
        }
        polled
    }
}

#[derive(Debug, Serialize, Deserialize, dq::DelayJob)]
#[job(topic = "orders")]
struct Order {
    items: String,
}

#[delay_listener(register = false, concurrency = 1024)]
async fn orders(_job: Job<Order>, log: &Log) -> Result<(), JobError> {
    log.note(Seen::Start);
    if log.ended.fetch_add(1, SeqCst) + 1 == JOBS {
        log.all_ended.notify_one();
    }
    Ok(())
}

/// If the transfer went out later, the thread of the handlers might still be slower, in four of ten drains. So there are several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_transfer_is_on_the_wire_before_the_handlers_of_the_last_one_start() {
    for _ in 0..5 {
        drain().await;
    }
}

async fn drain() {
    let (server, log) = (RedisServer::start(), Log::default());
    let factory = || ContextFactory::new("shop").without_inventory().variables([("", ""); 0]);
    let adding = factory().store(server.url()).without_listeners().start().await.unwrap();
    for _ in 0..JOBS / 1_000 {
        let orders = (0..1_000).map(|_| Order { items: "x".repeat(64) });
        adding.provider().add_many(orders).await.unwrap().all().unwrap();
    }
    let (port, noted) = (server.port(), log.clone());
    let store = RedisStore::new(&server.url()).unwrap().with_streams(move || {
        let log = noted.clone();
        async move { Ok(Noted(TcpStream::connect(("127.0.0.1", port)).await?, log)) }
    });
    let node = factory().store(Arc::new(store) as Arc<dyn Store>).listener::<orders>().provide(log.clone());
    let node = node.start().await.unwrap();
    log.all_ended.notified().await;
    node.shutdown(Duration::from_secs(1)).await;
    adding.shutdown(Duration::from_secs(1)).await;
    // The first start may come late: the next answer may be there before it.
    let seen = log.seen.lock().unwrap();
    let start = seen.iter().position(|seen| *seen == Seen::Start).unwrap();
    let mut order = seen[..start].iter().skip_while(|seen| **seen != Seen::Transfer);
    assert!(order.any(|seen| matches!(seen, Seen::Answer(_))), "the first claims: {:?}", &seen[..start]);
    assert!(order.any(|seen| *seen == Seen::Transfer), "the next transfer: {:?}", &seen[..start]);
}
