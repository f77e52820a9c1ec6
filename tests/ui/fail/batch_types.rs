use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(batch_size = 500)]
struct HandledOneByOne;

impl DelayListener for HandledOneByOne {
    type Job = CloseOrder;

    async fn on_due(&self, _: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener]
struct NotInTheAttribute;

impl BatchListener for NotInTheAttribute {
    type Job = CloseOrder;

    async fn on_batch(&self, batch: Batch<CloseOrder>) -> Result<Decided, JobError> {
        Ok(batch.rest().ack())
    }
}

#[delay_listener(batch_size = 500)]
struct BranchWithoutADecision;

impl BatchListener for BranchWithoutADecision {
    type Job = CloseOrder;

    async fn on_batch(&self, batch: Batch<CloseOrder>) -> Result<Decided, JobError> {
        for job in batch.iter().filter(|job| job.paid) {
            batch.ack(job);
        }
        Ok(())
    }
}

#[delay_listener(batch_size = 500)]
async fn returns_a_number(batch: Batch<CloseOrder>) -> Result<usize, JobError> {
    Ok(batch.len())
}

fn main() {}
