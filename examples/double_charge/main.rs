//! Finds a handler that charges an order twice, by simulating it with faults, and shows how to fix it.
//!
//! In your own crate this is a test: add dq-testing to the dev-dependencies and call `.run()`, which panics with the trace,
//! instead of `.try_run()`.

mod shop;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use dq::prelude::*;
use dq_testing::{Finding, Simulation, Summary, choose, simulate};
use serde::{Deserialize, Serialize};

use shop::Shop;

/// The number of orders in a run. The seed chooses it, and shrinking reduces it.
fn orders() -> u64 {
    choose("orders", 1..=3)
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "charge", delay = "1m")]
struct Charge {
    #[job(id)]
    order: u64,
}

/// The obvious first version. If its node dies after the charge and before the ack, the job runs again.
#[delay_listener(register = false)]
async fn careless(job: Job<Charge>, shop: &Arc<Shop>) -> Result<(), JobError> {
    shop.charge(job.order, None).await;
    shop.mark_paid(job.order).await;
    Ok(())
}

/// The obvious first fix. It is no better: the node may die between the charge and the mark, or two nodes may check at once.
#[delay_listener(register = false)]
async fn looks_first(job: Job<Charge>, shop: &Arc<Shop>) -> Result<(), JobError> {
    if !shop.is_paid(job.order).await {
        shop.charge(job.order, None).await;
        shop.mark_paid(job.order).await;
    }
    Ok(())
}

/// The fix: the bank executes a charge with the same key once, however often it is asked. The key names the order, not the run.
#[delay_listener(register = false)]
async fn with_a_key(job: Job<Charge>, shop: &Arc<Shop>) -> Result<(), JobError> {
    shop.charge(job.order, Some(format!("charge-{}", job.order))).await;
    shop.mark_paid(job.order).await;
    Ok(())
}

/// The simulation, the same for each handler.
fn charging<L: DelayListener>() -> Simulation<Arc<Shop>> {
    simulate(|| Arc::new(Shop::default()))
        .node(|factory, shop| factory.provide(shop).listener::<L>())
        .work(|jobs, _| place_orders(jobs))
        .check(|shop, _| shop.every_order_is_charged_once(orders()))
        .seeds(0..200)
}

async fn place_orders(jobs: Provider) {
    for order in 1..=orders() {
        // After `CallError::Unknown` the job may have been added. Adding it again with `keep_existing` is safe.
        while let Err(error) = jobs.add(Charge { order }).keep_existing().await {
            eprintln!("adding order {order} again: {error}");
        }
    }
}

/// Prints the result to stdout and the trace to stderr. Returns whether the result is the expected one.
fn report(name: &str, ended: &Result<Summary, Box<Finding>>, finding_expected: bool) -> bool {
    match ended {
        Ok(summary) => {
            println!("{name:<12} nothing found in {} seeds", summary.seeds);
            let Summary { jobs, handled, faults, took, .. } = summary;
            eprintln!("  {jobs} jobs, {handled} runs, {faults} faults in {:.2} s", took.as_secs_f64());
        }
        Err(finding) => {
            println!("{name:<12} FOUND: an order is charged twice");
            eprintln!("{finding}");
        }
    }
    ended.is_err() == finding_expected
}

/// Finds a handler that charges an order twice, by simulating it with faults, and shows how to fix it.
#[derive(Parser)]
struct Arguments;

fn main() -> ExitCode {
    let Arguments = Arguments::parse();
    let ended = [
        report("careless", &charging::<careless>().try_run(), true),
        report("looks first", &charging::<looks_first>().try_run(), true),
        report("with a key", &charging::<with_a_key>().try_run(), false),
    ];
    if ended == [true; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
