use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

struct Orders;

#[delay_listener]
struct OrderTimeout<'a> {
    orders: &'a Orders,
}

fn main() {}
