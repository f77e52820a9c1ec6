//! Two jobs of one order: a reminder before the order is closed.

use dq::prelude::*;
use dq::testing::Harness;
use serde::{Deserialize, Serialize};

use crate::scripted_listener::{HOUR, Log, MINUTE, start};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-reminder", delay = "20m")]
struct Remind {
    #[job(id)]
    order: u64,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-close", delay = "30m")]
struct Close {
    #[job(id)]
    order: u64,
}

#[delay_listener(register = false)]
async fn remind(job: Job<Remind>, log: Log) -> Result<(), JobError> {
    log.record(format_args!("remind {}", job.order));
    Ok(())
}

#[delay_listener(register = false)]
async fn close(job: Job<Close>, log: Log) -> Result<(), JobError> {
    log.record(format_args!("close {}", job.order));
    Ok(())
}

async fn order(dq: &Harness, order: u64) {
    dq.provider().add(Remind { order }).await.unwrap();
    dq.provider().add(Close { order }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_order_is_reminded_and_then_closed_and_each_job_can_be_deleted_alone() {
    let log = Log::new();
    let dq = start(|factory| factory.provide(log.clone()).listener::<remind>().listener::<close>()).await;
    for number in [1, 2, 3] {
        order(&dq, number).await;
    }
    dq.provider().delete::<Remind>(1_u64).await.unwrap(); // wants no mail
    dq.advance(25 * MINUTE).await;
    dq.provider().delete::<Close>(2_u64).await.unwrap(); // paid after the reminder
    dq.advance(HOUR).await;
    let mut lines = log.take();
    lines[..2].sort_unstable();
    lines[2..].sort_unstable();
    assert_eq!(lines, ["1200s remind 2", "1200s remind 3", "1800s close 1", "1800s close 3"]);
}
