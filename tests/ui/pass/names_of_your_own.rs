//! Generated code means the library's names, whatever the user calls things.

#![allow(dead_code, non_camel_case_types, non_snake_case)]

mod std {}
mod core {}
mod alloc {}

struct Vec;
struct Box;
struct String;
enum Option {
    Some,
    None,
}
enum Result {
    Ok,
    Err,
}
fn Some() {}
fn Ok() {}
trait Default {}
trait Clone {}
trait Send {}
trait Debug {}
macro_rules! concat {
    () => {};
}
macro_rules! line {
    () => {};
}

#[derive(serde::Serialize, serde::Deserialize, dq::DelayJob)]
#[job(topic = "order-timeout", delay = "1m", id = "{order_id}")]
struct CloseOrder {
    order_id: u64,
}

#[dq::delay_listener(topic = "order-timeout", concurrency = 2, timeout = "1s", retry = "1m", ack = "on_return")]
async fn close(job: dq::Job<CloseOrder>, orders: u8, state: &u16) -> ::std::result::Result<(), dq::JobError> {
    let _ = (job.order_id, orders, state);
    ::std::result::Result::Ok(())
}

#[dq::broadcast_listener(channels = ["cache-expired"])]
struct DropCache {
    cache: u8,
    #[inject(default)]
    seen: u64,
}

impl dq::BroadcastListener for DropCache {
    type Message = CloseOrder;

    async fn on_message(&self, _expired: dq::Broadcast<CloseOrder>) -> ::std::result::Result<(), dq::JobError> {
        ::std::result::Result::Ok(())
    }
}

fn main() {}
