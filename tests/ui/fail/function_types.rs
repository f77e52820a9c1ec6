use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn decides_but_returns_unit(job: Job<CloseOrder>, channel: Channel) -> Result<(), JobError> {
    let _ = (job.order_id, channel);
    Ok(())
}

struct Orders;

#[delay_listener]
async fn dependency_is_not_clone(job: Job<CloseOrder>, orders: Orders) -> Result<(), JobError> {
    let _ = (job.order_id, orders);
    Ok(())
}

#[delay_listener]
async fn returns_no_result(job: Job<CloseOrder>) -> u64 {
    job.order_id
}

#[delay_listener]
async fn without_channel_returns_a_number(job: Job<CloseOrder>) -> Result<u64, JobError> {
    Ok(job.order_id)
}

async fn give_up(job: Job<CloseOrder>) {
    let _ = job.order_id;
}

#[delay_listener(on_exhausted = "give_up")]
async fn on_exhausted_takes_something_else(job: Job<CloseOrder>) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

#[delay_listener]
async fn rejoin_after_a_bare_number(job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
    let _ = job.order_id;
    Ok(channel.rejoin_after(15))
}

fn main() {}
