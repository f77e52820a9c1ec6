use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener]
async fn close(batch: Batch<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
    drop(batch);
    Ok(channel.ack())
}

fn main() {}
