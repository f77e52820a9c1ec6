//! Plays the events of the file at their times.
//!
//! Each order belongs to one of a few lanes, which handle their events one after the other: what happens to an order stays
//! in order, and what happens to different orders shares round trips to the store.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::orders::Event;
use crate::shop::{Failed, Shop};

const LANES: u64 = 16;

/// Events that may wait in a lane; further ones are late.
const LANE: usize = 64;

/// Plays `events`, `speed` times as fast, from the first one's time on.
pub(crate) async fn replay(shop: &Shop, events: &[Event], speed: f64) -> Result<(), Failed> {
    let mut working = JoinSet::new();
    let lanes: Vec<_> = (0..LANES).map(|_| start_lane(shop.clone(), &mut working)).collect();
    let (start, first_ms) = (Instant::now(), events.first().map_or(0, |event| event.at_ms));
    for event in events {
        sleep_until(start + Duration::from_millis(event.at_ms - first_ms).div_f64(speed)).await;
        if lanes[(event.order % LANES) as usize].send(*event).await.is_err() {
            break; // the lane failed, and says below why
        }
    }
    drop(lanes);
    while let Some(ended) = working.join_next().await {
        ended??;
    }
    Ok(())
}

fn start_lane(shop: Shop, working: &mut JoinSet<Result<(), Failed>>) -> mpsc::Sender<Event> {
    let (lane, mut events) = mpsc::channel(LANE);
    working.spawn(async move {
        while let Some(event) = events.recv().await {
            shop.handle(event).await?;
        }
        Ok(())
    });
    lane
}
