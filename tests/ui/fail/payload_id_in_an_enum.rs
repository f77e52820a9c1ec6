use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
enum CloseOrder {
    One {
        #[job(id)]
        order_id: u64,
    },
}

fn main() {}
