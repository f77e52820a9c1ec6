use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener(batch_size = 5000, ack = "on_claim")]
async fn acked_on_claim(batch: Batch<CloseOrder>) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

#[delay_listener]
async fn beside_a_job(batch: Batch<CloseOrder>, job: Job<CloseOrder>) -> Result<(), JobError> {
    drop((batch, job));
    Ok(())
}

#[delay_listener(batch_size = 500)]
async fn decides_nothing(batch: Batch<CloseOrder>) {
    drop(batch);
}

#[delay_listener(batch_size = 500)]
async fn of_a_function_that_takes_one_job(job: Job<CloseOrder>) -> Result<(), JobError> {
    drop(job);
    Ok(())
}

#[delay_listener]
async fn with_a_channel(batch: Batch<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
    drop(batch);
    Ok(channel.ack())
}

#[delay_listener]
async fn borrowed(batch: &Batch<CloseOrder>) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

#[delay_listener]
async fn bare(batch: Batch) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

fn main() {}
