use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    #[job(idd)]
    order_id: u64,
    #[job(delay = "5m")]
    tenant: u64,
    #[job]
    shop: u64,
}

fn main() {}
