use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

struct Orders;

impl Orders {
    #[delay_listener]
    async fn by_value(self, job: Job<CloseOrder>) -> Result<(), JobError> {
        let _ = job.order_id;
        Ok(())
    }

    #[delay_listener]
    async fn mutable(&mut self, job: Job<CloseOrder>) -> Result<(), JobError> {
        let _ = job.order_id;
        Ok(())
    }

    #[delay_listener]
    async fn shared(self: std::sync::Arc<Self>, job: Job<CloseOrder>) -> Result<(), JobError> {
        let _ = job.order_id;
        Ok(())
    }

    #[delay_listener]
    async fn names_its_type(job: Job<CloseOrder>, orders: std::sync::Arc<Self>) -> Result<(), JobError> {
        let _ = (job.order_id, orders);
        Ok(())
    }

    #[delay_listener]
    async fn calls_its_type(job: Job<CloseOrder>) -> Result<(), JobError> {
        Self::close(job.order_id);
        Ok(())
    }

    fn close(_: u64) {}
}

fn main() {}
