use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

#[delay_listener]
async fn is_generic<T: Clone>(job: Job<CloseOrder>, orders: T) -> Result<(), JobError> {
    let _ = (job.order_id, orders);
    Ok(())
}

#[delay_listener]
fn is_not_async(job: Job<CloseOrder>) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

#[delay_listener]
async unsafe fn is_unsafe(job: Job<CloseOrder>) -> Result<(), JobError> {
    let _ = job.order_id;
    Ok(())
}

#[delay_listener]
async fn returns_nothing(job: Job<CloseOrder>) {
    let _ = job.order_id;
}

#[delay_listener]
async fn with_two_jobs_and_channels(
    job: Job<CloseOrder>,
    other: Job<CloseOrder>,
    channel: Channel,
    second: Channel,
) -> Result<Decided, JobError> {
    let _ = (job.order_id, other.order_id, second);
    Ok(channel.ack())
}

#[delay_listener]
async fn without_a_job(orders: u8) -> Result<(), JobError> {
    let _ = orders;
    Ok(())
}

trait Mail {}

#[delay_listener]
async fn with_dependencies_that_cannot_be(
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

struct Orders;

impl Orders {
    #[delay_listener]
    async fn by_reference(&self, job: Job<CloseOrder>) -> Result<(), JobError> {
        let _ = job.order_id;
        Ok(())
    }

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
