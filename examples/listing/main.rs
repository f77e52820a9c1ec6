//! Everything a program with dq can contain, in one file.

mod shop;

use std::sync::Arc;

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};

use shop::{Cache, Closing, Counter, Orders};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout", delay = "30m")]
struct CloseOrder {
    #[job(id)]
    order_id: u64,
}

#[delay_listener(topic = "order-timeout", concurrency = 64, timeout = "5s", retry = "1m, 5m, 10m, 30m, 1h")]
struct OrderTimeout {
    orders: Arc<Orders>,
    provider: Provider,
    #[inject(default)]
    seen: Counter,
}

impl DelayListener for OrderTimeout {
    type Job = CloseOrder;

    async fn on_due(&self, job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        self.seen.count();
        Ok(match self.orders.close_if_unpaid(job.order_id).await? {
            Closing::Closed => {
                self.provider.add(Remind { who: "ada".into() }).after("1h").await?;
                channel.ack()
            }
            Closing::AlreadyPaid => channel.ack(),
            Closing::PaymentPending => channel.rejoin_after("2m"),
        })
    }

    async fn on_exhausted(&self, job: Job<CloseOrder>, cause: &Failure) {
        self.orders.page(&format!("order {} was not closed: {cause}", job.order_id));
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "remind")]
struct Remind {
    who: String,
}

#[delay_listener(timeout = "5s")]
async fn remind(job: Job<Remind>, orders: &Arc<Orders>) -> Result<(), JobError> {
    orders.mail(&job.who).await?;
    Ok(())
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "cache-expired")]
struct CacheExpired {
    key: String,
}

impl CacheExpired {
    fn new(key: &str) -> Self {
        Self { key: key.into() }
    }
}

#[broadcast_listener(channels = ["cache-expired"])]
struct DropCache {
    cache: Arc<Cache>,
}

impl BroadcastListener for DropCache {
    type Message = CacheExpired;

    async fn on_message(&self, expired: Broadcast<CacheExpired>) -> Result<(), JobError> {
        self.cache.forget(&expired.message.key);
        Ok(())
    }
}

/// Everything a program with dq can contain; it runs until Ctrl-C or SIGTERM.
///
/// The variable DQ_STORE names the store of the jobs. Without it, the jobs are in the directory `./dq-data/listing`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<(), dq::Error> {
    let Arguments = Arguments::parse();
    let dq = ContextFactory::new("shop")
        .store("file:./dq-data/listing") // `DQ_STORE` overrides this
        .provide(Arc::new(Orders::open()?))
        .provide(Arc::new(Cache))
        .start()
        .await?;
    let jobs = dq.provider();
    let waiting = jobs.counts::<CloseOrder>().await?.delayed;
    eprintln!("{waiting} order(s) wait since an earlier start");
    jobs.add(CloseOrder { order_id: 7 }).keep_existing().await?.or_error_if_dead()?;
    jobs.add(CloseOrder { order_id: 8 }).after("15m").keep_existing().await?.or_error_if_dead()?;
    jobs.add(CacheExpired::new("prices")).broadcast().after("1m").await?;
    jobs.delete::<CloseOrder>(7).await?;
    jobs.add(Remind { who: "ada".into() }).after(delay!("1s")).await?;
    dq.run_until_signal().await?;
    Ok(())
}
