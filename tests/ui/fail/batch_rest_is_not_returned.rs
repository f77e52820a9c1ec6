#![deny(unused_must_use)]

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    paid: bool,
}

#[delay_listener]
async fn close(batch: Batch<CloseOrder>) -> Result<(), JobError> {
    batch.rest().rejoin_after("2m");
    Ok(())
}

fn main() {}
