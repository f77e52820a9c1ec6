//! One-time codes by SMS: one that comes twice confuses people, one that is lost they ask for again. So each job is acked before its
//! handler starts, and runs at most once.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Parser;
use dq::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const CUSTOMERS: u64 = 30;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "one-time-code", delay = "100ms")]
struct SendCode {
    #[job(id)]
    customer: u64,
}

/// The SMS gateway, which fails for every tenth customer after it may have sent the message.
#[derive(Debug, Default)]
struct Gateway(Mutex<BTreeMap<u64, u32>>);

impl Gateway {
    fn tried(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, customer: u64) -> Result<(), &'static str> {
        *self.tried().entry(customer).or_default() += 1;
        if customer.is_multiple_of(10) { Err("the gateway has not answered") } else { Ok(()) }
    }
}

/// `retry` would count for nothing here: once the handler runs, the store does not know the job any more.
#[delay_listener(ack = "on_claim", timeout = "5s")]
async fn send_code(job: Job<SendCode>, gateway: &Arc<Gateway>) -> Result<(), JobError> {
    gateway.send(job.customer)?;
    Ok(())
}

/// Sends one-time codes, each at most once.
///
/// The variable DQ_STORE names the store. Without it, the store is `memory:`.
#[derive(Parser)]
struct Arguments;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Arguments = Arguments::parse();
    let gateway = Arc::new(Gateway::default());
    let dq = ContextFactory::new("login")
        .store("memory:") // `DQ_STORE` overrides this
        .provide(gateway.clone())
        .start()
        .await?;
    let jobs = dq.provider().clone();
    println!("{CUSTOMERS} customers ask for a code");
    jobs.add_many((1..=CUSTOMERS).map(|customer| SendCode { customer })).await?.all()?;
    while gateway.tried().len() < CUSTOMERS as usize {
        sleep(delay!("20ms")).await;
    }
    let health = dq.probe();
    dq.shutdown(delay!("5s")).await; // a failed one has no retry left behind
    let counters = health.health().topics[0].counters;
    let twice = gateway.tried().values().filter(|times| **times > 1).count();
    println!("the gateway was asked {} times, for nobody twice", gateway.tried().values().sum::<u32>());
    println!("{} attempts failed, and none of them is repeated", counters.failed);
    Ok(if twice == 0 && counters.failed == 3 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
