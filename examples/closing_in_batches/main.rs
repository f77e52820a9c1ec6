//! Closes the unpaid orders of a shop, hundreds by one statement: a listener that takes a batch.
//!
//! The statement says which orders it closed and which another transaction has locked, so each job of the batch gets the outcome
//! of its own order. An error of the statement would fail them all, and dq would retry each.

mod table;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use table::{Closing, Table};
use tokio::time::sleep;

const ORDERS: u64 = 5_000;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "close-order", delay = "300ms")]
struct CloseOrder {
    #[job(id)]
    order: u64,
}

#[delay_listener(batch_size = 500, concurrency = 2, timeout = "20s", retry = "none")]
struct CloseOrders {
    table: Arc<Table>,
}

impl BatchListener for CloseOrders {
    type Job = CloseOrder;

    async fn on_batch(&self, batch: Batch<CloseOrder>) -> Result<Decided, JobError> {
        let orders: Vec<u64> = batch.iter().map(|job| job.order).collect();
        let closing = self.table.close_unpaid(&orders).await?;
        for job in &batch {
            match closing[&job.order] {
                Closing::Closed | Closing::Paid => batch.ack(job),
                Closing::Locked => batch.rejoin_after(job, "200ms"), // not yet, and no attempt is spent
                Closing::Unknown => batch.fail(job, "there is no such order"),
            }
        }
        Ok(batch.rest().ack()) // there is none
    }

    async fn on_exhausted(&self, job: Job<CloseOrder>, _: &Failure) {
        self.table.report_unknown(job.order);
    }
}

/// Closes unpaid orders in batches, by a statement for hundreds of them.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let table = Arc::new(Table::with_orders(ORDERS));
    let dq = ContextFactory::new("shop")
        .store("memory:") // `DQ_STORE` overrides this
        .provide(table.clone())
        .start()
        .await?;
    let jobs = dq.provider();
    for first in (0..ORDERS).step_by(1_000) {
        jobs.add_many((first..first + 1_000).map(|order| CloseOrder { order })).await?.all()?;
    }
    loop {
        let counts = jobs.counts::<CloseOrder>().await?;
        if counts.delayed + counts.running == 0 {
            break;
        }
        sleep(delay!("20ms")).await;
    }
    let dead = jobs.counts::<CloseOrder>().await?.dead;
    dq.shutdown(delay!("5s")).await;

    let report = table.report();
    println!("{ORDERS} orders: {} closed, {} were paid, {} are unknown", report.closed, report.paid, report.unknown);
    println!("{} were locked at first, and closed later", report.locked);
    println!("{dead} jobs are DEAD: those of the unknown orders");
    eprintln!("{} statements", report.statements);
    let few = report.statements <= 100;
    println!("{}", if few { "a hundred statements were enough" } else { "TOO MANY STATEMENTS" });
    let ok = few && dead == report.unknown && report.closed + report.paid + report.unknown == ORDERS as usize;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
