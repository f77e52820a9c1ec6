use dq::prelude::*;

#[delay_listener]
struct OrderTimeout;

fn main() {}
