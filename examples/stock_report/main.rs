//! A report every second, whose payload a function makes at each tick. The program lists, pauses and resumes its schedule.

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::sleep;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "stock-report")]
struct StockReport {
    books: u32,
}

static STOCK: AtomicU32 = AtomicU32::new(100);

/// dq calls it at each tick, on one node, and adds what it returns as a job.
#[periodic(every = "1s", on_missed = "once")]
fn stock() -> StockReport {
    StockReport { books: STOCK.load(Relaxed) }
}

/// The reports that were written.
type Written = mpsc::UnboundedSender<u32>;

#[delay_listener(timeout = "5s")]
async fn write(job: Job<StockReport>, written: &Written) -> Result<(), JobError> {
    written.send(job.books)?;
    Ok(())
}

/// Writes a report every second, pauses that, and resumes it.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let (written, mut reports) = mpsc::unbounded_channel::<u32>();
    let dq = ContextFactory::new("books")
        .store("memory:") // `DQ_STORE` overrides this
        .provide::<Written>(written)
        .start()
        .await?;
    let jobs = dq.provider();

    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(reports.recv().await);
        STOCK.fetch_sub(1, Relaxed);
    }
    println!("two reports were written, of {} and {} books", seen[0], seen[1]);

    let mut schedules = jobs.schedules::<StockReport>();
    while let Some(page) = schedules.next_page().await? {
        for schedule in page {
            println!("the schedule `{}` ticks {:?}", schedule.name, schedule.details?.times);
        }
    }

    jobs.pause_schedule::<StockReport>("stock", "the printer is out of paper").await?;
    sleep(delay!("500ms")).await; // a job that was added before the pause ends
    while reports.try_recv().is_ok() {}
    sleep(delay!("2500ms")).await;
    let while_paused = reports.try_recv().is_ok();
    println!("reports while it was paused: {while_paused}");

    let resumed = jobs.resume_schedule::<StockReport>("stock").await?;
    println!("it is resumed: {}", resumed.details?.pause.is_none());
    let after = reports.recv().await;
    println!("one report for the ticks that it missed: {}", after.is_some());
    dq.shutdown(delay!("5s")).await;
    Ok(if seen == [100, 99] && !while_paused { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
