use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "report")]
struct Report {
    customer: u64,
}

#[periodic(every = "1h")]
#[periodic(every = "2h")]
#[periodic(every = "3h", name = "third")]
#[periodic(every = "4h", name = "third")]
fn report() -> Report {
    Report::default()
}

fn main() {}
