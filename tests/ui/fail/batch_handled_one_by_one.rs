use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(batch = 500)]
struct CloseOrders;

impl DelayListener for CloseOrders {
    type Job = CloseOrder;

    async fn on_due(&self, _: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

fn main() {}
