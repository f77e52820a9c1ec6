//! Two listeners of two topics, in the order of their places.

use dq::listener::Registration;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "remind")]
struct Remind;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
struct OrderTimeout;

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener]
async fn remind(_job: Job<Remind>) -> Result<(), JobError> {
    Ok(())
}

fn main() {
    let names: Vec<_> = Registration::all().iter().map(|registration| registration.name).collect();
    assert_eq!(names, ["OrderTimeout", "remind"]);
}
