use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(on_exhausted = "give_up")]
async fn close(job: Job<CloseOrder>) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

fn main() {}
