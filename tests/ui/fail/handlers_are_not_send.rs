use std::rc::Rc;

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn of_a_function(job: Job<CloseOrder>) -> Result<(), JobError> {
    let shared = Rc::new(job.order_id);
    tokio::task::yield_now().await;
    let _ = shared;
    Ok(())
}

#[delay_listener]
struct OrderTimeout;

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let shared = Rc::new(job.order_id);
        tokio::task::yield_now().await;
        let _ = shared;
        Ok(channel.ack())
    }
}

fn main() {}
