use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct CloseOrder;

#[delay_listener]
struct OrderTimeout;

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job;
        Ok(channel.ack())
    }
}

fn main() {}
