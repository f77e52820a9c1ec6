use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

macro_rules! on_due {
    ($listener:ident) => {
        impl DelayListener for $listener {
            type Job = CloseOrder;

            async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
                let _ = job.order_id;
                Ok(channel.ack())
            }
        }
    };
}

struct Counter;

#[delay_listener]
struct DefaultFieldWithoutDefault {
    #[inject(default)]
    seen: Counter,
}
on_due!(DefaultFieldWithoutDefault);

struct Orders;

#[delay_listener]
struct DependencyIsNotClone {
    orders: Orders,
}
on_due!(DependencyIsNotClone);

#[delay_listener]
struct WithoutHandler;

#[broadcast_listener(channels = ["cache-expired"])]
struct BroadcastWithoutHandler;

struct HandlerWithoutAnnotation;

impl DelayListener for HandlerWithoutAnnotation {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job.order_id;
        Ok(channel.ack())
    }
}

struct BroadcastHandlerWithoutAnnotation;

impl BroadcastListener for BroadcastHandlerWithoutAnnotation {
    type Message = String;

    async fn on_message(&self, expired: Broadcast<String>) -> Result<(), JobError> {
        let _ = expired.message;
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct PayloadWithoutDerive;

#[delay_listener]
struct ListensToPayloadWithoutDerive;

impl DelayListener for ListensToPayloadWithoutDerive {
    type Job = PayloadWithoutDerive;

    async fn on_due(&self, job: Job<PayloadWithoutDerive>, channel: Channel) -> Result<Decided, JobError> {
        let _ = job;
        Ok(channel.ack())
    }
}

fn main() {}
