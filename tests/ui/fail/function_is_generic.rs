use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn close<T: Clone>(job: Job<CloseOrder>, orders: T) -> Result<(), JobError> {
    let _ = (job.order_id, orders);
    Ok(())
}

fn main() {}
