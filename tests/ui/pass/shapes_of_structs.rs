//! Unit, tuple, empty and named structs.

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
struct Tuple(u8, #[inject(default)] u16);

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
    assert_eq!((tuple.0, tuple.1), (7, 0));
    assert_eq!(Tuple::dependencies()[0].field, "0");
}
