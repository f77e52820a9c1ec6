//! Unit, tuple and empty structs. State of the listener's own is made by `Default` and need not be `Clone`.

use std::sync::Mutex;

use dq::listener::{Declared, Injector};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(register = false)]
struct Unit;

impl DelayListener for Unit {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(register = false)]
struct Tuple(u8, #[inject(default)] Mutex<u16>);

impl DelayListener for Tuple {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(register = false)]
struct Empty {}

impl DelayListener for Empty {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

fn main() {
    let mut injector = Injector::default();
    injector.provide(7_u8, None);
    assert!(Unit::inject(&injector).is_ok() && Empty::inject(&injector).is_ok());
    let tuple = Tuple::inject(&injector).ok().unwrap();
    assert_eq!((tuple.0, tuple.1.into_inner().unwrap()), (7, 0));
    let fields: Vec<_> = Tuple::dependencies().iter().map(|needs| needs.field).collect();
    assert_eq!(fields, ["0"]);
}
