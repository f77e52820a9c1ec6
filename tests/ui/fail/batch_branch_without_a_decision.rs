use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(batch = 500)]
struct CloseOrders;

impl BatchListener for CloseOrders {
    type Job = CloseOrder;

    async fn on_batch(&self, batch: Batch<CloseOrder>) -> Result<Decided, JobError> {
        for job in batch.iter().filter(|job| job.paid) {
            batch.ack(job);
        }
        Ok(())
    }
}

fn main() {}
