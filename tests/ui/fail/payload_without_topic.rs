use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
struct CloseOrder {
    order_id: u64,
}

fn main() {}
