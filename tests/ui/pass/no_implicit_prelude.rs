//! Without the prelude of the language: generated code says where each name comes from.

#![no_implicit_prelude]
#![allow(dead_code)]

use ::core::result::Result::{self, Ok};
use ::dq::{
    Broadcast, BroadcastListener, Channel, Decided, DelayJob, DelayListener, Failure, Job, JobError, broadcast_listener,
    delay_listener,
};
use ::serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "30m", retry = "1m", expires_after = "1h", deliver = "both", id = "{tenant}:{order}")]
struct CloseOrder {
    tenant: u8,
    order: u64,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "page")]
struct Page<T> {
    #[job(id)]
    number: u64,
    items: ::std::vec::Vec<T>,
}

#[delay_listener(topic = "order-timeout", concurrency = 2, timeout = "1s", on_timeout = "immediate", retry = "1m")]
struct OrderTimeout {
    orders: ::std::sync::Arc<u8>,
    #[inject(default)]
    seen: u64,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(register = false, on_exhausted = "give_up", max_crashes = 2, ack = "on_return")]
async fn close(_job: Job<CloseOrder>, orders: &u8, owned: u16) -> Result<(), JobError> {
    let _ = (orders, owned);
    Ok(())
}

async fn give_up(_job: Job<CloseOrder>, _cause: &Failure) {}

#[delay_listener]
async fn page(_job: Job<Page<u8>>, channel: Channel) -> Result<Decided, JobError> {
    Ok(channel.park())
}

#[broadcast_listener(channels = ["prices"])]
struct OnPrices {
    cache: u8,
}

impl BroadcastListener for OnPrices {
    type Message = CloseOrder;

    async fn on_message(&self, _prices: Broadcast<CloseOrder>) -> Result<(), JobError> {
        Ok(())
    }
}

fn main() {
    ::core::assert_eq!(::dq::delay!("1s"), ::core::time::Duration::from_secs(1));
    ::core::assert_eq!(::dq::listener::Registration::all().len(), 3);
}
