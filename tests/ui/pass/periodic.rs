//! Schedules in every form.
#![deny(warnings)]

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "report")]
struct Report;

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "cleanup")]
struct Cleanup {}

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "batches")]
struct Many {}

#[periodic(cron = "0 9 * * MON-FRI", tz = "Asia/Singapore", on_missed = "once", skipped = "never", repeated = "second")]
#[periodic(every = "30s", name = "often", overlap = "skip", jitter = "5s", revision = 3)]
#[delay_listener]
async fn write(_: Job<Report>) -> Result<(), JobError> {
    Ok(())
}

#[periodic(every = "1h", start = "2026-01-01T00:00:00Z", end = "2126-01-01T00:00:00Z", on_missed = "all")]
fn hourly() -> Report {
    Report
}

pub mod public {
    #[dq::periodic(every = "1d", register = false)]
    pub(crate) async fn r#async() -> super::Report {
        super::Report
    }
}

#[periodic(every = "15m")]
#[delay_listener]
struct Clean {}

impl DelayListener for Clean {
    type Job = Cleanup;

    async fn on_due(&self, _: Job<Cleanup>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[periodic(every = "15m")]
#[delay_listener(batch_size = 5)]
async fn batches(_: Batch<Many>) -> Result<(), JobError> {
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    use dq::schedule::HasSchedules;
    assert_eq!(<write as HasSchedules>::SCHEDULES.len(), 2);
    assert_eq!(<public::r#async as HasSchedules>::SCHEDULES[0].name, "async");
    let _ = (hourly(), public::r#async().await);
}
