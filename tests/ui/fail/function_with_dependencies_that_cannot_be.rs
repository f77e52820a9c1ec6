use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

trait Mail {}

#[delay_listener]
async fn close(
    job: Job<CloseOrder>,
    orders: &mut u8,
    name: &str,
    mail: impl Mail,
    notify: &dyn Mail,
    list: &[u8],
) -> Result<(), JobError> {
    let _ = (job.order_id, orders, name, mail, notify, list);
    Ok(())
}

fn main() {}
