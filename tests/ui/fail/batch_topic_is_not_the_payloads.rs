use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(topic = "orders", batch = 500)]
async fn close(batch: Batch<CloseOrder>) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

fn main() {}
