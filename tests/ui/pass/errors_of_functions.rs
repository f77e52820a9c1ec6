//! A function may return any error that `?` turns into a `JobError`.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener(register = false)]
async fn std_error(job: Job<CloseOrder>) -> Result<(), std::num::ParseIntError> {
    assert_eq!("7".parse::<u64>()?, job.order_id);
    Ok(())
}

#[delay_listener(register = false)]
async fn text(_job: Job<CloseOrder>) -> Result<(), String> {
    Err("no".to_owned())
}

type Boxed = Box<dyn std::error::Error + Send + Sync>;

#[delay_listener(register = false)]
async fn boxed(_job: Job<CloseOrder>, channel: Channel) -> Result<Decided, Boxed> {
    Ok(channel.ack())
}

#[delay_listener(register = false)]
async fn io(_job: Job<CloseOrder>) -> std::io::Result<()> {
    Ok(())
}

fn main() {}
