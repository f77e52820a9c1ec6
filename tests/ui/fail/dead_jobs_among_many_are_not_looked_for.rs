use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

async fn add(jobs: &Provider) -> Result<(), dq::Error> {
    jobs.add_many([CloseOrder { order: 7 }]).keep_existing().await?.all()?;
    Ok(())
}

fn main() {
    let _ = add;
}
