use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(batch = 500)]
async fn close(job: Job<CloseOrder>) -> Result<(), JobError> {
    drop(job);
    Ok(())
}

fn main() {}
