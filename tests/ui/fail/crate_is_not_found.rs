use dq::prelude::*;

mod work {}

#[delay_listener(crate = "work")]
struct OrderTimeout;

fn main() {}
