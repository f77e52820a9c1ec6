//! Tells merchants that they were paid, again and again until their server answers; pages somebody when it never does.

mod gateway;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use gateway::{Behaviour, Gateway};

/// The ladder of `retry` below; at work it would be "1m, 5m, 10m, 30m, 1h".
const LADDER: [Duration; 3] = [delay!("100ms"), delay!("200ms"), delay!("300ms")];

/// Tell the merchant about this payment.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "payment-notify")]
struct NotifyMerchant {
    #[job(id)]
    payment: u64,
    merchant: String,
}

/// What is told on stdout.
enum News {
    Told { merchant: String, run: u32 },
    Paged { merchant: String, why: String },
}

#[delay_listener(concurrency = 8, timeout = "2s", retry = "100ms, 200ms, 300ms")]
struct Notify {
    gateway: Arc<Gateway>,
    news: UnboundedSender<News>,
}

impl DelayListener for Notify {
    type Job = NotifyMerchant;

    async fn on_due(&self, job: Job<NotifyMerchant>, channel: Channel) -> Result<Decided, JobError> {
        self.gateway.notify(&job.merchant, job.payment).await?;
        self.news.send(News::Told { merchant: job.merchant.clone(), run: job.attempt() + 1 })?;
        Ok(channel.ack())
    }

    /// The last attempt failed; when this returns, the job is DEAD: listed, counted, and it can be sent back.
    async fn final_retry(&self, job: Job<NotifyMerchant>, cause: &Failure) {
        let page = News::Paged { merchant: job.merchant.clone(), why: cause.to_string() };
        if self.news.send(page).is_err() {
            eprintln!("nobody hears that {} could not be told", job.merchant);
        }
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let gateway = Arc::new(Gateway::new([
        ("bakery", Behaviour::Answers),
        ("bookshop", Behaviour::FailsTimes(2)),
        ("florist", Behaviour::IsDown),
        ("hotel", Behaviour::HangsTimes(1)),
    ]));
    let (news, mut told) = unbounded_channel();
    let dq = ContextFactory::new("payments")
        .store("memory:") // `DQ_STORE` outweighs it
        .provide(gateway.clone())
        .provide(news)
        .start()
        .await?;
    let jobs = dq.provider();
    for (payment, merchant) in (1..).zip(["bakery", "bookshop", "florist", "hotel"]) {
        // Whatever an earlier run of this program left under the number goes.
        jobs.add(NotifyMerchant { payment, merchant: merchant.into() }).replace_existing().await?;
    }
    tell(&mut told, 4).await;

    println!("-- somebody mends the florist's server and sends the DEAD job back");
    gateway.mend("florist");
    // The pager rings while the job is still running its final retry: a moment later it is DEAD.
    while !jobs.requeue::<NotifyMerchant>(3).await?.changed {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tell(&mut told, 1).await;
    dq.shutdown(delay!("5s")).await;

    let too_soon = gateway.pauses("bookshop").into_iter().zip(LADDER).filter(|(pause, step)| pause < step).count();
    println!("-- retries that came sooner than the ladder says: {too_soon}");
    Ok(if too_soon == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits for the news of so many merchants and prints them by name.
async fn tell(news: &mut UnboundedReceiver<News>, merchants: usize) {
    let mut lines = BTreeMap::new();
    while lines.len() < merchants
        && let Some(news) = news.recv().await
    {
        let (merchant, line) = match news {
            News::Told { merchant, run } => (merchant, format!("told by run {run}")),
            News::Paged { merchant, why } => (merchant, format!("PAGE: not told, given up: {why}")),
        };
        lines.insert(merchant, line);
    }
    lines.iter().for_each(|(merchant, line)| println!("{merchant:<10}{line}"));
}
