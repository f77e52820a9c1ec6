//! What the attribute says arrives in the registration, with the place of the attribute.

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use dq::listener::{Declared, ListenerKind, Registration};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "order-timeout")]
struct CloseOrder {
    order_id: u64,
}

const PLACE: (&str, u32) = (file!(), line!() + 2);

#[delay_listener(
    topic = "order-timeout",
    concurrency = 64,
    timeout = "5s",
    on_timeout = "immediate",
    retry = "1m, 5m",
    ack = "on_claim",
    max_crashes = 4,
    history_max = 20,
    history_retention = "1d",
    statistics = true
)]
struct Everything;

impl DelayListener for Everything {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(register = false)]
struct Nothing;

impl DelayListener for Nothing {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(timeout = "none", register = false)]
struct NoLimit;

impl DelayListener for NoLimit {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[delay_listener(timeout = "0s", on_timeout = "retry", ack = "on_return", register = false)]
struct AlsoNoLimit;

impl DelayListener for AlsoNoLimit {
    type Job = CloseOrder;

    async fn on_due(&self, _job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
        Ok(channel.ack())
    }
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "remind", delay = "30m", retry = "none")]
#[job(expires_after = "1h", retain = "1d", deliver = "both", priority = "low")]
struct Remind;

fn main() {
    let all = Registration::all();
    let [only] = all.as_slice() else { panic!("{all:?}") };
    let settings = [
        ("concurrency", "64"),
        ("timeout", "5s"),
        ("on_timeout", "immediate"),
        ("retry", "1m, 5m"),
        ("ack", "on_claim"),
        ("max_crashes", "4"),
        ("history_max", "20"),
        ("history_retention", "1d"),
        ("statistics", "true"),
    ];
    assert_eq!((only.settings, only.kind), (&settings[..], ListenerKind::Delay { topic: "order-timeout" }));
    assert_eq!(only.declared_at, format!("{}:{}", PLACE.0, PLACE.1));
    assert_eq!((Everything::TOPIC, Nothing::TOPIC), (Some("order-timeout"), None));
    assert_eq!(Nothing::SETTINGS, []);
    assert_eq!(NoLimit::SETTINGS, [("timeout", "none")]);
    assert_eq!(AlsoNoLimit::SETTINGS, [("timeout", "0s"), ("on_timeout", "retry"), ("ack", "on_return")]);
    let defaults = Remind::DEFAULTS;
    assert_eq!((defaults.delay, defaults.retry), (Duration::from_secs(1800), Some("none")));
    assert_eq!(defaults.expires_after, Some(Duration::from_secs(3600)));
    assert_eq!(defaults.retain, Duration::from_secs(86_400));
    assert_eq!(defaults.priority, dq::job::Priority::Low);
}
