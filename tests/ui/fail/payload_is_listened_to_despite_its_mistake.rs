use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topc = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(topic = "order-timeout")]
async fn close(job: Job<CloseOrder>) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

fn main() {}
