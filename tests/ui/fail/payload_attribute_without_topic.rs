use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(delay = "30m")]
struct CloseOrder {
    order_id: u64,
}

fn main() {}
