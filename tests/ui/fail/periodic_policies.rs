use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "report")]
struct Report {
    customer: u64,
}

#[periodic(every = "1h", on_missed = "twice", overlap = "alow", jitter = "5", skipped = "later", name = "")]
fn policies() -> Report {
    Report::default()
}

#[periodic(evry = "1h", cron_line = "0 9 * * *")]
fn keys() -> Report {
    Report::default()
}

fn main() {}
