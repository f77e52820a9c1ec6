use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener]
async fn close(batch: Batch<CloseOrder>, job: Job<CloseOrder>) -> Result<(), JobError> {
    drop((batch, job));
    Ok(())
}

fn main() {}
