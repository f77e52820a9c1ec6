//! Replays the events of the file at their times.
//!
//! Each order belongs to one of a few queues, and each queue handles its events one at a time. The events of one order thus stay
//! in order, while those of different orders share round trips to the store.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::orders::Event;
use crate::shop::{Failed, Shop};

const QUEUES: u64 = 16;

/// How many events may wait in a queue; further ones are replayed late.
const CAPACITY: usize = 64;

/// Replays `events`, `speed` times as fast, beginning with the first one at once.
pub(crate) async fn replay(shop: &Shop, events: &[Event], speed: f64) -> Result<(), Failed> {
    let mut working = JoinSet::new();
    let queues: Vec<_> = (0..QUEUES).map(|_| start_queue(shop.clone(), &mut working)).collect();
    let (start, first_ms) = (Instant::now(), events.first().map_or(0, |event| event.at_ms));
    for event in events {
        sleep_until(start + Duration::from_millis(event.at_ms - first_ms).div_f64(speed)).await;
        if queues[(event.order % QUEUES) as usize].send(*event).await.is_err() {
            break; // the queue failed; its error is returned below
        }
    }
    drop(queues);
    while let Some(ended) = working.join_next().await {
        ended??;
    }
    Ok(())
}

fn start_queue(shop: Shop, working: &mut JoinSet<Result<(), Failed>>) -> mpsc::Sender<Event> {
    let (sender, mut events) = mpsc::channel(CAPACITY);
    working.spawn(async move {
        while let Some(event) = events.recv().await {
            shop.handle(event).await?;
        }
        Ok(())
    });
    sender
}
