use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
struct OrderTimeout<T> {
    orders: T,
}

impl<T: Clone + Send + Sync + 'static> DelayListener for OrderTimeout<T> {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = (job.order_id, &self.orders);
        Ok(channel.ack())
    }
}

fn main() {}
