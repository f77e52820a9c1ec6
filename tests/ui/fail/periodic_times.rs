use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize, DelayJob)]
#[job(topic = "report")]
struct Report {
    customer: u64,
}

#[periodic(cron = "0 9 * *", tz = "UTC")]
fn no_line() -> Report {
    Report::default()
}

#[periodic(cron = "0 0 30 2 *", tz = "UTC")]
fn never() -> Report {
    Report::default()
}

#[periodic(cron = "0 9 * * *", tz = "Asia/Singapur")]
fn nowhere() -> Report {
    Report::default()
}

#[periodic(cron = "0 9 * * *")]
fn no_zone() -> Report {
    Report::default()
}

#[periodic(every = "0s")]
fn too_often() -> Report {
    Report::default()
}

#[periodic(every = "1h", cron = "0 9 * * *", tz = "UTC")]
fn both() -> Report {
    Report::default()
}

#[periodic(every = "1h", tz = "UTC")]
fn zone_of_nothing() -> Report {
    Report::default()
}

#[periodic(on_missed = "once")]
fn when() -> Report {
    Report::default()
}

#[periodic(every = "1h", start = "2027-01-01T00:00:00Z", end = "2026-01-01T00:00:00Z")]
fn backwards() -> Report {
    Report::default()
}

#[periodic(every = "1h", start = "tomorrow")]
fn no_time() -> Report {
    Report::default()
}

fn main() {}
