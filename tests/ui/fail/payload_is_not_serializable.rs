use dq::prelude::*;

#[derive(DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder;

fn main() {}
