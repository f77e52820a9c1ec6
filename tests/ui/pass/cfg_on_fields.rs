//! A field that is compiled out is not injected.

use dq::listener::{Declared, Injector};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
struct OrderTimeout {
    #[cfg(any())]
    never: NoSuchType,
    #[cfg(all())]
    always: u8,
    #[cfg(any())]
    #[inject(default)]
    never_mine: NoSuchType,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(register = false)]
struct Tuple(#[cfg(any())] NoSuchType, u8);

impl DelayListener for Tuple {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(register = false)]
async fn close(
    _job: Job<CloseOrder>,
    #[cfg(any())] never: NoSuchType,
    #[cfg(all())] always: &u8,
) -> Result<(), JobError> {
    assert_eq!(*always, 7);
    Ok(())
}

fn main() {
    let mut injector = Injector::default();
    injector.provide(7_u8, None);
    assert_eq!(OrderTimeout::inject(&injector).ok().unwrap().always, 7);
    assert_eq!(Tuple::inject(&injector).ok().unwrap().0, 7);
    let fields: Vec<_> = OrderTimeout::dependencies().iter().map(|dependency| dependency.field).collect();
    assert_eq!(fields, ["always"]);
    assert_eq!(close::dependencies().len(), 1);
}
