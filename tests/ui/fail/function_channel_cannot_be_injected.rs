use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

mod bank {
    pub struct Channel;
}

#[delay_listener]
async fn not_clone(_job: Job<CloseOrder>, bank: bank::Channel) -> Result<(), JobError> {
    let _ = bank;
    Ok(())
}

#[delay_listener]
async fn borrowed(_job: Job<CloseOrder>, channel: &Channel) -> Result<(), JobError> {
    let _ = channel;
    Ok(())
}

#[delay_listener]
async fn decides(_job: Job<CloseOrder>, channel: &Channel) -> Result<Decided, JobError> {
    Ok(channel.ack())
}

fn main() {}
