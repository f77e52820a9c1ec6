use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
struct OrderTimeout;

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        if job.order_id == 7 {
            return Ok(());
        }
        Ok(channel.ack())
    }
}

fn main() {}
