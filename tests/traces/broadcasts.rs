//! A broadcast listener that is too far behind is a warning, one a minute while it is, and a line when it has caught up.

use std::sync::Arc;

use tracing::Level;

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::recorder::subscribe;
use crate::scripted_listener::{SECOND, start};

/// How many broadcasts may wait for a listener.
const QUEUE: usize = 1_024;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "prices", deliver = "broadcast")]
struct Prices;

/// Handles as many broadcasts as there are permits.
#[broadcast_listener(channels = ["prices"], register = false)]
struct Slow {
    gate: Arc<Semaphore>,
}

impl BroadcastListener for Slow {
    type Message = Prices;

    async fn on_message(&self, _: Broadcast<Prices>) -> Result<(), JobError> {
        self.gate.acquire().await?.forget();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_misses_many_broadcasts_is_one_warning_and_one_line_with_their_number() {
    let (traces, _guard) = subscribe();
    let gate = Arc::new(Semaphore::new(0));
    let provided = gate.clone();
    let dq = start(|factory| factory.provide(provided).broadcast_listener::<Slow>()).await;
    traces.events(Level::INFO);
    // One is with the listener, and so many fit behind it.
    for part in [1_000, QUEUE + 1 - 1_000, 70] {
        dq.provider().add_many((0..part).map(|_| Prices)).await.unwrap().all().unwrap();
        dq.advance(SECOND).await;
    }
    assert_eq!(dq.health().channels[0].missed, 70);
    let warn = traces.events(Level::WARN);
    assert!(warn.len() == 1 && warn[0].contains("channel=prices listener=\"Slow\" broadcasts=1"), "{warn:#?}");
    assert!(warn[0].contains("behind=1024") && warn[0].contains("is too far behind"), "{warn:#?}");

    gate.add_permits(QUEUE + 2);
    dq.advance(SECOND).await;
    dq.provider().add(Prices).await.unwrap();
    dq.advance(SECOND).await;
    let info = traces.events(Level::INFO);
    assert!(info.len() == 1 && info[0].contains("has caught up") && info[0].contains("broadcasts=70"), "{info:#?}");
    assert_eq!((traces.events(Level::WARN), traces.events(Level::ERROR)), (vec![], vec![]));
}
