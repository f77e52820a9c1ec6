use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "4000 days")]
struct CloseOrder {
    order_id: u64,
}

fn main() {}
