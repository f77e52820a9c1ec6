//! dq under another name, where no crate is called dq: as a crate, as a path, and for the derive.

use serde::{Deserialize, Serialize};
use work::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", crate = "work")]
struct CloseOrder {
    #[job(id)]
    order_id: u64,
}

mod inner {
    pub(crate) use work as again;
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "page", delay = "1s", crate = "work", id = "{0}")]
struct Page<T>(u64, Vec<T>);

mod tonic {
    #[derive(Debug, Clone)]
    pub(crate) struct Channel;
}

#[delay_listener(crate = "work")]
struct OrderTimeout {
    orders: u8,
    #[inject(default)]
    names: Vec<String>,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(
    crate = crate::inner::again,
    topic = "order-timeout",
    timeout = "1s",
    on_timeout = "retry",
    ack = "on_claim",
    register = false
)]
async fn close(
    job: Job<CloseOrder>,
    orders: &u8,
    sum: u16,
    bank: tonic::Channel,
    channel: Channel,
) -> Result<Decided, JobError> {
    let _ = (sum, bank);
    assert_eq!(*orders, 7);
    Ok(if job.order_id == 7 { channel.ack() } else { channel.park() })
}

#[broadcast_listener(channels = ["cache-expired"], crate = "inner::again")]
struct DropCache(u8);

impl BroadcastListener for DropCache {
    type Message = CloseOrder;

    async fn on_message(&self, _expired: Broadcast<CloseOrder>) -> Result<(), JobError> {
        Ok(())
    }
}

fn main() {
    let names: Vec<_> = work::listener::Registration::all().iter().map(|registration| registration.name).collect();
    assert_eq!(names, ["OrderTimeout", "DropCache"]);
    let _ = OrderTimeout { orders: 7, names: Vec::new() }.orders;
    assert_eq!(Page::<u8>::TOPIC, "page");
}
