use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "report")]
struct Report {
    customer: u64,
}

#[periodic(every = "1h")]
#[delay_listener]
async fn write(job: Job<Report>) -> Result<(), JobError> {
    drop(job);
    Ok(())
}

fn main() {}
