use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn close(
    job: Job<CloseOrder>,
    other: Job<CloseOrder>,
    channel: Channel,
    second: Channel,
) -> Result<Decided, JobError> {
    let _ = (job.order_id, other.order_id, second);
    Ok(channel.ack())
}

fn main() {}
