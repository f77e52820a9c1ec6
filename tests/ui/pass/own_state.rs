//! State of the listener's own is made by `Default` and need not be `Clone`.

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;

use dq::listener::{Declared, Injector};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[derive(Default)]
struct Counter(AtomicU64);

#[delay_listener]
struct OrderTimeout {
    #[inject(default)]
    seen: Counter,
    #[inject(default)]
    names: std::sync::Mutex<Vec<String>>,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

fn main() {
    let listener = OrderTimeout::inject(&Injector::default()).ok().unwrap();
    assert!(OrderTimeout::dependencies().is_empty());
    assert_eq!(listener.seen.0.into_inner(), 0);
    assert!(listener.names.into_inner().unwrap().is_empty());
}
