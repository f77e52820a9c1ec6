use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(batch = 5000, ack = "on_claim")]
async fn close(batch: Batch<CloseOrder>) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

fn main() {}
