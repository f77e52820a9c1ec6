use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

use std::rc::Rc;

#[delay_listener]
async fn close(job: Job<CloseOrder>) -> Result<(), JobError> {
    let shared = Rc::new(job.order_id);
    tokio::task::yield_now().await;
    let _ = shared;
    Ok(())
}

fn main() {}
