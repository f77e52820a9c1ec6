use dq::prelude::*;

#[delay_listener]
enum OrderTimeout {
    One,
}

fn main() {}
