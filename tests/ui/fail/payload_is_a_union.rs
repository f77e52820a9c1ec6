use dq::prelude::*;

#[derive(DelayJob)]
#[job(topic = "order-timeout")]
union CloseOrder {
    a: u8,
}

fn main() {}
