use dq::Channel as DqChannel;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn close(job: Job<CloseOrder>, channel: Channel, second: DqChannel) -> Result<Decided, JobError> {
    let _ = (job.order_id, second);
    Ok(channel.ack())
}

fn main() {}
