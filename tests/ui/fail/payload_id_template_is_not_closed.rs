use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{order_id")]
struct CloseOrder {
    order_id: u64,
}

fn main() {}
