use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener]
async fn close(batch: &Batch<CloseOrder>) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

#[delay_listener]
async fn reopen(batch: Batch) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

fn main() {}
