//! Finds a handler that charges an order twice, by simulating it with faults, and shows how it is mended.
//!
//! In a crate of yours this is a test: the feature `testing` of dq among the dev-dependencies, and `.run()`, which panics
//! with the account, in place of `.try_run()`.

mod shop;

use std::process::ExitCode;
use std::sync::Arc;

use dq::prelude::*;
use dq_testing::{Finding, Simulation, Summary, choose, simulate};
use serde::{Deserialize, Serialize};

use shop::Shop;

/// How many orders there are in a run: the seed decides, and what is found is shrunk to few.
fn orders() -> u64 {
    choose("orders", 1..=3)
}

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "charge", delay = "1m")]
struct Charge {
    #[job(id)]
    order: u64,
}

/// As one writes it first. When its node dies after the charge and before the ack, the job runs again.
#[delay_listener(register = false)]
async fn careless(job: Job<Charge>, shop: &Arc<Shop>) -> Result<(), JobError> {
    shop.charge(job.order, None).await;
    shop.mark_paid(job.order).await;
    Ok(())
}

/// As one mends it first. It is no better: the node dies between the charge and the mark, or two nodes look at once.
#[delay_listener(register = false)]
async fn looks_first(job: Job<Charge>, shop: &Arc<Shop>) -> Result<(), JobError> {
    if !shop.is_paid(job.order).await {
        shop.charge(job.order, None).await;
        shop.mark_paid(job.order).await;
    }
    Ok(())
}

/// Mended: the bank does the same charge once, however often it is asked. The key is of the order, not of the run.
#[delay_listener(register = false)]
async fn with_a_key(job: Job<Charge>, shop: &Arc<Shop>) -> Result<(), JobError> {
    shop.charge(job.order, Some(format!("charge-{}", job.order))).await;
    shop.mark_paid(job.order).await;
    Ok(())
}

/// The simulation; only the handler differs.
fn charging<L: DelayListener>() -> Simulation<Arc<Shop>> {
    simulate(|| Arc::new(Shop::default()))
        .node(|factory, shop| factory.provide(shop).listener::<L>())
        .work(|jobs, _| place_orders(jobs))
        .check(|shop, _| shop.every_order_is_charged_once(orders()))
        .seeds(0..200)
}

async fn place_orders(jobs: Provider) {
    for order in 1..=orders() {
        // `Unknown`: perhaps it was added. Asking again with `keep_existing` is safe.
        while let Err(error) = jobs.add(Charge { order }).keep_existing().await {
            eprintln!("order {order} once more: {error}");
        }
    }
}

/// One line for people, the account to stderr. True if it ended as it should.
fn tell(name: &str, ended: &Result<Summary, Box<Finding>>, wanted: bool) -> bool {
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
    ended.is_err() == wanted
}

fn main() -> ExitCode {
    let ended = [
        tell("careless", &charging::<careless>().try_run(), true),
        tell("looks first", &charging::<looks_first>().try_run(), true),
        tell("with a key", &charging::<with_a_key>().try_run(), false),
    ];
    if ended == [true; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
