use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    #[job(id)]
    order_ids: Vec<u64>,
}

fn main() {}
