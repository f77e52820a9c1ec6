use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener]
struct CloseOrders;

impl BatchListener for CloseOrders {
    type Job = CloseOrder;

    async fn on_batch(&self, batch: Batch<CloseOrder>) -> Result<Decided, JobError> {
        Ok(batch.rest().ack())
    }
}

fn main() {}
