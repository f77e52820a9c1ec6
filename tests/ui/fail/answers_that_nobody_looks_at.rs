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
    jobs.add_many([CloseOrder { order: 7 }]).keep_existing().await?.or_error_if_dead();
    jobs.ack::<CloseOrder>(7).await?;
    jobs.requeue::<CloseOrder>(7).await?;
    Ok(())
}

fn calls_that_nobody_awaits(jobs: &Provider) {
    jobs.add(CloseOrder { order: 7 });
    jobs.add_many([CloseOrder { order: 7 }]).keep_existing();
    jobs.delete::<CloseOrder>(7);
    jobs.ack::<CloseOrder>(7);
    jobs.counts::<CloseOrder>();
}

async fn node_is_not_kept() -> Result<(), dq::Error> {
    ContextFactory::new("shop").store("memory:");
    ContextFactory::new("shop").store("memory:").start().await?;
    let dq = ContextFactory::new("shop").store("memory:").start().await?;
    dq.signals();
    Ok(())
}

fn main() {
    let _ = (change, calls_that_nobody_awaits, node_is_not_kept);
}
