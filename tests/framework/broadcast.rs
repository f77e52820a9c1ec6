//! Broadcasts reach every node once, when they are due.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::prelude::*;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::start;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "cache-expired", deliver = "broadcast")]
struct CacheExpired {
    key: String,
}

#[broadcast_listener(channels = ["cache-expired"])]
struct DropEntry {
    received: Arc<Mutex<Vec<String>>>,
}

impl BroadcastListener for DropEntry {
    type Message = CacheExpired;

    async fn on_message(&self, expired: Broadcast<CacheExpired>) -> Result<(), JobError> {
        self.received.lock().unwrap().push(expired.message.key);
        Ok(())
    }
}

fn expired(key: &str) -> CacheExpired {
    CacheExpired { key: key.into() }
}

#[tokio::test(start_paused = true)]
async fn every_node_receives_a_broadcast_once_when_it_is_due() {
    let received: [Arc<Mutex<Vec<String>>>; 3] = Default::default();
    let with = |at: usize| {
        let received = received[at].clone();
        |factory: ContextFactory| factory.broadcast_listener::<DropEntry>().provide(received)
    };
    let first = start(with(0)).await;
    let others = [first.another(2, with(1)).await, first.another(3, with(2)).await];

    let jobs = first.provider();
    jobs.add(expired("prices")).after("300ms").await.unwrap();
    jobs.add(expired("menu")).after("100ms").await.unwrap();
    first.advance(Duration::from_millis(100)).await;
    for received in &received {
        assert_eq!(*received.lock().unwrap(), ["menu"]);
    }
    first.advance(Duration::from_millis(200)).await;
    for received in &received {
        assert_eq!(*received.lock().unwrap(), ["menu", "prices"]);
    }
    first.advance(Duration::from_secs(60)).await;
    for (received, node) in received.iter().zip([first].into_iter().chain(others)) {
        assert_eq!(received.lock().unwrap().len(), 2);
        node.shutdown(Duration::ZERO).await;
    }
}
