use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn close(job: Job<CloseOrder>) -> Result<u64, JobError> {
    Ok(job.order_id)
}

fn main() {}
