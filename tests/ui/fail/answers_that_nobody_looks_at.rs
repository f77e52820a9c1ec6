#![deny(warnings)]
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

async fn change(jobs: &Provider) -> Result<(), dq::Error> {
    jobs.add(CloseOrder { order: 7 }).keep_existing().await?;
    jobs.add_many([CloseOrder { order: 7 }]).await?;
    jobs.add_many([CloseOrder { order: 7 }]).keep_existing().await?.unless_dead();
    jobs.ack::<CloseOrder>(7).await?;
    jobs.requeue::<CloseOrder>(7).await?;
    Ok(())
}

fn main() {
    let _ = change;
}
