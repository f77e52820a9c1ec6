use dq::Channel as DqChannel;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(topic = "order-timeouts")]
struct AnotherTopic;

impl DelayListener for AnotherTopic {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job.order_id;
        Ok(channel.ack())
    }
}

#[delay_listener(concurrency = 3, topic = "orders")]
struct AfterOtherKeys;

impl DelayListener for AfterOtherKeys {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job.order_id;
        Ok(channel.ack())
    }
}

#[delay_listener(topic = "orders", batch_size = 500)]
async fn of_a_batch(batch: Batch<CloseOrder>) -> Result<(), JobError> {
    drop(batch);
    Ok(())
}

#[delay_listener]
async fn with_two_channels(job: Job<CloseOrder>, channel: Channel, second: DqChannel) -> Result<Decided, JobError> {
    let _ = (job.order_id, second);
    Ok(channel.ack())
}

#[periodic(every = "1h")]
#[delay_listener]
async fn periodic_without_default(job: Job<CloseOrder>) -> Result<(), JobError> {
    drop(job);
    Ok(())
}

fn main() {}
