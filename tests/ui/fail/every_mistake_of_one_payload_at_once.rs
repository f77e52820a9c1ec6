use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order timeout", dely = "30m", retry = "5x", retain = 1, deliver = "que")]
struct CloseOrder {
    order_id: u64,
}

fn main() {}
