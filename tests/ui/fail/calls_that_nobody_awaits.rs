#![deny(warnings)]
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

fn change(jobs: &Provider) {
    jobs.add(CloseOrder { order: 7 });
    jobs.add_many([CloseOrder { order: 7 }]).keep_existing();
    jobs.delete::<CloseOrder>(7);
    jobs.ack::<CloseOrder>(7);
    jobs.counts::<CloseOrder>();
}

fn main() {
    let _ = change;
}
