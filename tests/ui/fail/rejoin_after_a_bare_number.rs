use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn close(job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
    let _ = job.order_id;
    Ok(channel.rejoin_after(15))
}

fn main() {}
