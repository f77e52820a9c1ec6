use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "report")]
struct Report {
    customer: u64,
}

#[periodic(every = "1h")]
fn with_a_parameter(customer: u64) -> Report {
    Report { customer }
}

#[periodic(every = "1h")]
fn without_a_payload() {}

#[periodic(every = "1h")]
fn generic<T: Into<u64> + Default>() -> Report {
    Report { customer: T::default().into() }
}

#[periodic(every = "1h")]
enum Nothing {}

#[delay_listener]
#[periodic(every = "1h")]
async fn below(job: Job<Report>) -> Result<(), JobError> {
    drop(job);
    Ok(())
}

fn main() {}
