use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder<'a> {
    who: &'a str,
}

fn main() {}
