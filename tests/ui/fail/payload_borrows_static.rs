use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    who: &'static str,
}

fn main() {}
