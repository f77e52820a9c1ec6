//! Ids of numbers, texts, addresses, newtypes and of several fields.

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

#[derive(Serialize, Deserialize)]
struct OrderId(u64);

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order-{}", self.0)
    }
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "a")]
struct ByNewtype {
    #[job(id)]
    id: OrderId,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "b")]
struct ByAddress(u8, #[job(id)] IpAddr);

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "c")]
struct ByText {
    #[job(id)]
    r#type: String,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "d", id = "{tenant}:{order}/{{x}}/{type}")]
struct ByTemplate {
    tenant: String,
    order: u64,
    r#type: char,
}

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "e", id = "{1}-{0}")]
struct ByTemplateOfTuple(u8, u16);

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "f", id = "nightly")]
struct Singleton;

#[derive(Serialize, Deserialize, DelayJob)]
#[job(topic = "g")]
struct Generated {
    note: String,
}

fn id(job: &impl DelayJob) -> String {
    job.job_id().unwrap().unwrap().as_str().to_owned()
}

fn main() {
    assert_eq!(id(&ByNewtype { id: OrderId(7) }), "order-7");
    assert_eq!(id(&ByAddress(0, [127, 0, 0, 1].into())), "127.0.0.1");
    assert_eq!(id(&ByText { r#type: "x".into() }), "x");
    assert_eq!(id(&ByTemplate { tenant: "shop".into(), order: 7, r#type: 'c' }), "shop:7/{x}/c");
    assert_eq!(id(&ByTemplateOfTuple(1, 2)), "2-1");
    assert_eq!(id(&Singleton), "nightly");
    assert!(Generated { note: String::new() }.job_id().is_none());
    assert!(ByText { r#type: "x".repeat(257) }.job_id().unwrap().is_err());
}
