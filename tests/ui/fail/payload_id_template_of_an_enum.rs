use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", id = "{order_id}")]
enum CloseOrder {
    One { order_id: u64 },
}

fn main() {}
