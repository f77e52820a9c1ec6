//! Notifies merchants of payments, with retries until their server answers, and pages an operator if it never does.

mod gateway;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use gateway::{Behaviour, Gateway};

/// The ladder of `retry` below; in production it would be "1m, 5m, 10m, 30m, 1h".
const LADDER: [Duration; 3] = [delay!("100ms"), delay!("200ms"), delay!("300ms")];

/// Notifies the merchant of this payment.
#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "payment-notify")]
struct NotifyMerchant {
    #[job(id)]
    payment: u64,
    merchant: String,
}

/// What the listener reports to `main`, which prints it.
enum Report {
    Notified { merchant: String, run: u32 },
    Paged { merchant: String, why: String },
}

#[delay_listener(concurrency = 8, timeout = "2s", retry = "100ms, 200ms, 300ms")]
struct Notify {
    gateway: Arc<Gateway>,
    reports: UnboundedSender<Report>,
}

impl DelayListener for Notify {
    type Job = NotifyMerchant;

    async fn on_due(&self, job: Job<NotifyMerchant>, channel: Channel) -> Result<Decided, JobError> {
        self.gateway.notify(&job.merchant, job.payment).await?;
        self.reports.send(Report::Notified { merchant: job.merchant.clone(), run: job.attempt() + 1 })?;
        Ok(channel.ack())
    }

    /// The last attempt failed. When this returns, the job is DEAD: it is listed and counted and can be requeued.
    async fn on_exhausted(&self, job: Job<NotifyMerchant>, cause: &Failure) {
        let page = Report::Paged { merchant: job.merchant.clone(), why: cause.to_string() };
        if self.reports.send(page).is_err() {
            eprintln!("cannot report that {} was not notified", job.merchant);
        }
    }
}

/// Notifies merchants of payments, with retries until their server answers.
///
/// The variable DQ_STORE names the store of the jobs. Without it, the jobs are in the directory `./dq-data/payment_notify`.
#[derive(Parser)]
struct Arguments;

/// The merchants; the first one is notified of payment 1.
const MERCHANTS: [&str; 4] = ["bakery", "bookshop", "florist", "hotel"];

/// The store of the jobs. `DQ_STORE` overrides this.
const STORE: &str = "file:./dq-data/payment_notify";

/// Deletes what an earlier run left that was killed: its merchants' servers have gone with it.
async fn start_clean() -> Result<(), Box<dyn Error>> {
    let dq = ContextFactory::new("payments").store(STORE).without_listeners().start().await?;
    for (payment, merchant) in (1_u64..).zip(MERCHANTS) {
        if dq.provider().delete::<NotifyMerchant>(payment).await?.changed {
            eprintln!("deleted what an earlier run left for the {merchant}");
        }
    }
    dq.shutdown(delay!("5s")).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    start_clean().await?;
    let gateway = Arc::new(Gateway::new([
        ("bakery", Behaviour::Answers),
        ("bookshop", Behaviour::FailsTimes(2)),
        ("florist", Behaviour::IsDown),
        ("hotel", Behaviour::HangsTimes(1)),
    ]));
    let (sender, mut reports) = unbounded_channel();
    let dq = ContextFactory::new("payments").store(STORE).provide(gateway.clone()).provide(sender).start().await?;
    let jobs = dq.provider();
    for (payment, merchant) in (1..).zip(MERCHANTS) {
        // Waits for the end of a run that was killed, if the store still waits for its node.
        jobs.add(NotifyMerchant { payment, merchant: merchant.into() }).replace_existing().await?;
    }
    print_reports(&mut reports, 4).await;

    println!("-- the florist's server is fixed, and the DEAD job is requeued");
    gateway.fix("florist");
    // `on_exhausted` sends the page; the job becomes DEAD a moment later.
    while !jobs.requeue::<NotifyMerchant>(3).await?.changed {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    print_reports(&mut reports, 1).await;
    dq.shutdown(delay!("5s")).await;

    let too_early = gateway.pauses("bookshop").into_iter().zip(LADDER).filter(|(pause, step)| pause < step).count();
    println!("-- retries that came too early: {too_early}");
    Ok(if too_early == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits for the reports of `merchants` merchants and prints them by name.
async fn print_reports(reports: &mut UnboundedReceiver<Report>, merchants: usize) {
    let mut lines = BTreeMap::new();
    while lines.len() < merchants
        && let Some(report) = reports.recv().await
    {
        let (merchant, line) = match report {
            Report::Notified { merchant, run } => (merchant, format!("notified by run {run}")),
            Report::Paged { merchant, why } => (merchant, format!("PAGE: not notified, given up: {why}")),
        };
        lines.insert(merchant, line);
    }
    lines.iter().for_each(|(merchant, line)| println!("{merchant:<10}{line}"));
}
