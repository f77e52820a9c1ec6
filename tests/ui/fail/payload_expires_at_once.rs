use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", expires_after = "0s")]
struct CloseOrder {
    order_id: u64,
}

fn main() {}
