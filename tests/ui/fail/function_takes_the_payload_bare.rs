use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn payload_alone(job: CloseOrder) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

#[delay_listener]
async fn beside_others(orders: u8, job: CloseOrder, channel: Channel) -> Result<Decided, JobError> {
    let _ = (orders, job.order_id);
    Ok(channel.ack())
}

#[delay_listener]
async fn under_another_name(order: CloseOrder) -> Result<(), JobError> {
    let _ = order.order_id;
    Ok(())
}

#[delay_listener]
async fn borrowed(job: &Job<CloseOrder>) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

#[delay_listener]
async fn without_its_payload(_job: Job) -> Result<(), JobError> {
    Ok(())
}

fn main() {}
