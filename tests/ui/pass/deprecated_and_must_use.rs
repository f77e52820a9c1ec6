//! Attributes of the user's that the compiler checks where an item is used: generated code is no use of it.

#![deny(warnings)]

use dq::listener::Registration;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

mod payloads {
    #![allow(deprecated)]
    use super::*;

    #[deprecated = "use `CloseOrder`"]
    #[must_use]
    #[derive(Debug, Serialize, Deserialize, DelayJob)]
    #[job(topic = "old", id = "{order}")]
    pub(crate) struct Old {
        #[deprecated]
        pub(crate) order: u64,
    }
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    #[job(id)]
    #[deprecated]
    order: u64,
}

#[allow(deprecated)]
#[delay_listener(register = false)]
async fn of_an_old_payload(job: Job<payloads::Old>) -> Result<(), JobError> {
    let _ = job.order;
    Ok(())
}

#[deprecated = "use `OrderTimeout`"]
#[must_use]
#[delay_listener(on_exhausted = "old_end", register = false)]
async fn old(_job: Job<CloseOrder>) -> Result<(), JobError> {
    Ok(())
}

#[deprecated]
async fn old_end(_job: Job<CloseOrder>, _cause: &Failure) {}

#[deprecated]
#[derive(Clone)]
struct OldOrders;

#[deprecated = "use another"]
#[must_use]
#[delay_listener]
struct OrderTimeout {
    #[deprecated]
    _orders: u8,
    #[allow(deprecated)]
    _old: OldOrders,
}

#[allow(deprecated)]
impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[deprecated]
#[broadcast_listener(channels = ["prices"])]
struct OnPrices {
    #[deprecated]
    #[allow(deprecated)]
    _old: OldOrders,
}

#[allow(deprecated)]
impl BroadcastListener for OnPrices {
    type Message = CloseOrder;

    async fn on_message(&self, _: Broadcast<CloseOrder>) -> Result<(), JobError> {
        Ok(())
    }
}

#[allow(deprecated)]
fn main() {
    let _ = payloads::Old { order: 7 };
    assert_eq!(Registration::delay::<of_an_old_payload>().name, "of_an_old_payload");
    assert_eq!(Registration::delay::<old>().name, "old");
    let all: Vec<_> = Registration::all().iter().map(|registration| registration.name).collect();
    assert_eq!(all, ["OrderTimeout", "OnPrices"]);
}
