//! The final retry of a function is a function, named by its path.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

mod end {
    use super::{CloseOrder, Failure, Job};

    pub(crate) async fn give_up(job: Job<CloseOrder>, cause: &Failure) {
        assert_eq!(job.order_id, 7, "{cause}");
    }
}

#[delay_listener(final_retry = "end::give_up")]
async fn close(_job: Job<CloseOrder>) -> Result<(), JobError> {
    Ok(())
}

#[delay_listener(final_retry = end::give_up, register = false)]
async fn without_quotes(_job: Job<CloseOrder>) -> Result<(), JobError> {
    Ok(())
}

fn main() {}
