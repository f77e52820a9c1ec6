use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

struct Orders;

#[delay_listener]
async fn close(job: Job<CloseOrder>, orders: Orders) -> Result<(), JobError> {
    let _ = (job.order_id, orders);
    Ok(())
}

fn main() {}
