//! A crate that denies everything: nothing generated trips a lint.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    unused_qualifications,
    unreachable_pub,
    missing_debug_implementations,
    clippy::pedantic
)]

use std::sync::Arc;

use dq::listener::{ListenerKind, Registration};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "30m", retry = "1m, 5m", expires_after = "1h", retain = "1d", deliver = "both")]
struct CloseOrder {
    #[job(id)]
    order_id: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "remind")]
struct Remind {
    who: String,
}

#[derive(Debug)]
struct Orders;

#[derive(Debug, Default)]
struct Counter;

#[derive(Debug)]
#[delay_listener(
    topic = "order-timeout",
    concurrency = 64,
    timeout = "5s",
    on_timeout = "immediate",
    retry = "1m, 5m, 10m, 30m, 1h",
    ack = "on_return",
    max_crashes = 3
)]
struct OrderTimeout {
    orders: Arc<Orders>,
    #[inject(default)]
    seen: Counter,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        tokio::task::yield_now().await;
        Ok(match (job.order_id, &self.orders, &self.seen) {
            (7, _, _) => channel.rejoin_after("2m"),
            _ => channel.ack(),
        })
    }
}

#[delay_listener(timeout = "5s")]
async fn remind(job: Job<Remind>, orders: &Arc<Orders>) -> Result<(), JobError> {
    if job.who.is_empty() {
        return Err(format!("{orders:?}").into());
    }
    Ok(())
}

#[derive(Debug)]
#[broadcast_listener(channels = ["cache-expired", "prices:eu"])]
struct DropCache {
    orders: Arc<Orders>,
}

impl BroadcastListener for DropCache {
    type Message = CloseOrder;

    async fn on_message(&self, expired: Broadcast<CloseOrder>) -> Result<(), JobError> {
        tokio::task::yield_now().await;
        assert_eq!(expired.message.order_id, 7, "{:?}", self.orders);
        Ok(())
    }
}

fn main() {
    let order = CloseOrder { order_id: 7 };
    assert_eq!(order.job_id().unwrap().unwrap().as_str(), "7");
    assert_eq!(CloseOrder::DEFAULTS.delay, delay!("30m"));
    assert_eq!(CloseOrder::DEFAULTS.deliver, dq::job::Delivery::Both);
    assert!(Remind { who: String::new() }.job_id().is_none());
    let all = Registration::all();
    let [_, _, broadcast] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(broadcast.kind, ListenerKind::Broadcast { channels: &["cache-expired", "prices:eu"] });
    assert_eq!((broadcast.dependencies)()[0].field, "orders");
}
