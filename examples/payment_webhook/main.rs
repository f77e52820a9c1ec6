//! A shop asks a bank for payments, and the bank answers later, over a webhook: each job is parked until then.
//!
//! The handler sends the fence of its run along, and the webhook acks or requeues by it. So an answer counts only for the run that
//! asked. A bank that refuses makes the job run again, and ask again.

mod bank;
mod books;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use bank::{Answer, Bank};
use books::Books;
use clap::Parser;
use dq::job::{Fence, State as JobState};
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::time::sleep;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "payment")]
struct Pay {
    #[job(id)]
    order: u64,
}

#[delay_listener(timeout = "10s")]
struct AskBank {
    bank: Bank,
    books: Arc<Books>,
}

impl DelayListener for AskBank {
    type Job = Pay;

    async fn on_due(&self, job: Job<Pay>, channel: Channel) -> Result<Decided, JobError> {
        self.books.asked(job.order);
        self.bank.ask(job.order, job.fence().0)?;
        Ok(channel.park()) // UNACKED, until the webhook comes
    }
}

/// What the webhook needs. No node: a provider is enough.
#[derive(Clone)]
struct Shop {
    jobs: Provider,
    books: Arc<Books>,
}

/// The bank calls this as often as it takes to get a 200.
async fn answered(
    State(shop): State<Shop>,
    Path(order): Path<u64>,
    Json(Answer { fence, paid }): Json<Answer>,
) -> Result<StatusCode, StatusCode> {
    // First the shop's own data, and so that a repeat does no harm. After a crash here the bank calls again.
    shop.books.answered(order, paid);
    let unavailable = |_| StatusCode::SERVICE_UNAVAILABLE;
    let fence = Fence(fence);
    if paid {
        // It may come before the handler has parked the job; then it takes effect when the run ends. It changes nothing if that
        // run is over, so a repeated call is fine.
        let _ = shop.jobs.ack::<Pay>(order).fence(fence).within("2s").await.map_err(unavailable)?;
        return Ok(StatusCode::OK);
    }
    let requeued = shop.jobs.requeue::<Pay>(order).fence(fence).within("2s").await.map_err(unavailable)?;
    let is_too_early = !requeued.changed && requeued.found == Some(JobState::Running);
    if is_too_early { Err(StatusCode::SERVICE_UNAVAILABLE) } else { Ok(StatusCode::OK) }
}

/// Parks jobs until a bank answers over a webhook.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (bank, calls) = Bank::opens(listener.local_addr()?);
    let books = Arc::new(Books::default());
    let dq = ContextFactory::new("shop")
        .store("memory:") // `DQ_STORE` overrides this
        .provide(bank)
        .provide(books.clone())
        .start()
        .await?;
    let jobs = dq.provider().clone();
    let shop = Shop { jobs: jobs.clone(), books: books.clone() };
    let app = Router::new().route("/payments/{order}", post(answered)).with_state(shop);
    let server = tokio::spawn(async { axum::serve(listener, app).await });
    let bank = tokio::spawn(calls.answer_all());

    println!("three orders are to be paid");
    jobs.add_many((1..=3).map(|order| Pay { order })).keep_existing().await?.or_error_if_dead().all()?;
    loop {
        let counts = jobs.counts::<Pay>().await?;
        if counts.delayed + counts.running + counts.unacked == 0 {
            break;
        }
        sleep(delay!("20ms")).await;
    }
    dq.shutdown(delay!("5s")).await;
    bank.abort();
    server.abort();
    let (lines, is_right) = books.report();
    lines.iter().for_each(|line| println!("{line}"));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
