#![deny(warnings)]
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn close(job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
    if job.order_id == 7 {
        channel.ack();
    }
    Err("no".into())
}

#[delay_listener]
async fn close_all(batch: Batch<CloseOrder>) -> Result<(), JobError> {
    batch.rest().rejoin_after("2m");
    Ok(())
}

fn main() {}
