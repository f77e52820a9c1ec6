//! A handler that is not idempotent is found, and one that is idempotent passes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dq::prelude::*;
use dq_testing::{Simulation, simulate};
use serde::{Deserialize, Serialize};
use tokio::time::sleep as handler_takes;

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "charge", delay = "1m")]
struct Charge {
    #[job(id)]
    order: u64,
}

/// Remembers every charge with its key.
#[derive(Debug, Default)]
struct Bank(Mutex<BTreeMap<u64, Vec<u64>>>);

impl Bank {
    async fn charge(&self, order: u64, key: u64, once: bool) {
        handler_takes(Duration::from_millis(20)).await;
        self.book(order, key, once);
        handler_takes(Duration::from_millis(20)).await;
    }

    fn book(&self, order: u64, key: u64, once: bool) {
        let mut charges = self.0.lock().unwrap();
        let of_order = charges.entry(order).or_default();
        if !(once && of_order.contains(&key)) {
            of_order.push(key);
        }
    }

    fn check(&self) -> Result<(), String> {
        let charges = self.0.lock().unwrap();
        let times = |order| charges.get(&order).map_or(0, Vec::len);
        let wrong = (0..4).find(|order| times(*order) != 1);
        wrong.map_or(Ok(()), |order| Err(format!("order {order} was charged {} times", times(order))))
    }
}

#[delay_listener(register = false)]
async fn charges_again(job: Job<Charge>, channel: Channel, bank: &Arc<Bank>) -> Result<Decided, JobError> {
    bank.charge(job.order, 0, false).await;
    Ok(channel.ack())
}

#[delay_listener(register = false)]
async fn charges_once(job: Job<Charge>, channel: Channel, bank: &Arc<Bank>) -> Result<Decided, JobError> {
    bank.charge(job.order, job.order, true).await;
    Ok(channel.ack())
}

async fn order_four(jobs: Provider) {
    for order in 0..4 {
        while jobs.add(Charge { order }).keep_existing().await.is_err() {}
    }
}

fn payments<L: DelayListener>() -> Simulation<Arc<Bank>> {
    simulate(|| Arc::new(Bank::default()))
        .node(|factory, bank| factory.provide(bank).listener::<L>())
        .work(|jobs, _| order_four(jobs))
        .check(|bank, _| bank.check())
        .seeds(0..500)
        .shrinks_for(Duration::from_secs(3_600)) // to the least, also on a slow machine
}

#[test]
fn a_handler_that_is_not_idempotent_is_found_and_its_account_says_why() {
    let finding = payments::<charges_again>().try_run().unwrap_err();
    assert!(finding.seed < 30, "{finding}");
    assert!(finding.what.contains("was charged 2 times"), "{finding}");
    for line in ["is added, due in 1m", "run 1, fence", "run 2, fence", "the store has the ack of charge/"] {
        assert!(finding.account.contains(line), "{line}: {finding}");
    }
    let again = format!(
        "DQ_SEED={} DQ_ONLY='{}' cargo test -p dq-tests users::payments::a_handler_that_is_not",
        finding.seed, finding.only
    );
    assert!(finding.to_string().contains(&again), "{finding}");
    assert_eq!(finding.differs, None, "{finding}");
}

#[test]
fn an_idempotent_handler_passes() {
    let summary = payments::<charges_once>().run();
    assert_eq!((summary.seeds, summary.jobs / 500, summary.differs), (500, 4, None));
    assert!(summary.handled > 2_000 && summary.faults > 300, "{} {}", summary.handled, summary.faults);
}

#[test]
fn without_faults_every_job_runs_once() {
    let summary = payments::<charges_again>().faults(dq_testing::Faults::none()).seeds(0..50).run();
    assert_eq!((summary.handled, summary.faults), (200, 0));
}
