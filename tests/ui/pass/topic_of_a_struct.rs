//! A struct that names its topic; the compiler compares it with the payload's.

use dq::listener::{Declared, ListenerKind, Registration};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(topic = "order-timeout")]
struct OrderTimeout;

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job.order_id;
        Ok(channel.ack())
    }
}

fn main() {
    assert_eq!(OrderTimeout::TOPIC, Some("order-timeout"));
    let all: Vec<_> = Registration::all().iter().map(|registration| (registration.name, registration.kind)).collect();
    assert_eq!(all, [("OrderTimeout", ListenerKind::Delay { topic: "order-timeout" })]);
}
