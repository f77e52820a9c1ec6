//! Listeners that take batches, in every form.
#![deny(warnings)]

use std::sync::Arc;

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "close")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "open")]
struct OpenOrder;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "mail")]
struct Mail;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "generic")]
struct Page;

/// Not dq's channel, but a dependency of that name.
#[derive(Clone)]
struct Channel;

#[delay_listener(batch_size = 500, topic = "close", concurrency = 2, on_exhausted = "give_up", ack = "on_return")]
async fn close(batch: Batch<CloseOrder>, orders: &Arc<Vec<u64>>, _: Channel) -> Result<(), JobError> {
    for job in &batch {
        match job.order {
            0 => batch.ack(job),
            1 => batch.fail(job, "no"),
            2 => batch.rejoin(job),
            3 => batch.rejoin_after(job, delay!("2m")),
            4 => batch.rejoin_at(job, std::time::SystemTime::now()),
            5 => batch.park(job),
            _ => batch.fail(job, std::fmt::Error),
        }
    }
    drop(orders.clone());
    Ok(())
}

async fn give_up(_: Job<CloseOrder>, _: &Failure) {}

#[delay_listener]
async fn open(batch: Batch<OpenOrder>) -> std::io::Result<Decided> {
    Ok(if batch.is_empty() { batch.rest().park() } else { batch.rest().rejoin_after("2m") })
}

#[delay_listener(batch_size = 1)]
struct Mails;

impl BatchListener for Mails {
    type Job = Mail;

    async fn on_batch(&self, batch: dq::Batch<Mail>) -> Result<Decided, JobError> {
        let first = &batch[0];
        batch.ack(first);
        tokio::task::yield_now().await;
        Ok(batch.rest().ack())
    }
}

#[delay_listener(batch_size = 1000, register = false)]
struct Pages<T: Send + Sync + 'static> {
    #[inject(default)]
    seen: Arc<Vec<T>>,
}

impl<T: Send + Sync + 'static> BatchListener for Pages<T> {
    type Job = Page;

    async fn on_batch(&self, batch: Batch<Page>) -> Result<Decided, JobError> {
        drop(self.seen.clone());
        Ok(batch.rest().ack())
    }
}

fn main() {
    let _ = dq::context::ContextFactory::new("shop").batch_listener::<Pages<u8>>().batch_listener::<open>();
}
