//! dq under another name: as a crate, as a path, and for the derive.

extern crate dq as work;

use serde::{Deserialize, Serialize};
use work::prelude::*;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", crate = "work")]
struct CloseOrder {
    #[job(id)]
    order_id: u64,
}

mod inner {
    pub(crate) use dq as again;
}

#[delay_listener(crate = "work")]
struct OrderTimeout {
    orders: u8,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(crate = crate::inner::again, register = false)]
async fn close(job: Job<CloseOrder>, orders: &u8, channel: Channel) -> Result<Decided, JobError> {
    assert_eq!(*orders, 7);
    Ok(if job.order_id == 7 { channel.ack() } else { channel.park() })
}

#[broadcast_listener(channels = ["cache-expired"], crate = "inner::again")]
struct DropCache;

impl BroadcastListener for DropCache {
    type Message = CloseOrder;

    async fn on_message(&self, _expired: Broadcast<CloseOrder>) -> Result<(), JobError> {
        Ok(())
    }
}

fn main() {
    let names: Vec<_> = work::listener::Registration::all().iter().map(|registration| registration.name).collect();
    assert_eq!(names, ["OrderTimeout", "DropCache"]);
    let _ = OrderTimeout { orders: 7 }.orders;
}
