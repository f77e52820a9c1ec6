//! Enums, units, tuples and generic payloads.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "a", deliver = "broadcast")]
enum Change {
    Price { of: String, cents: u64 },
    Removed(String),
    Everything,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "b")]
struct Unit;

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "c")]
#[serde(transparent)]
struct Newtype(Vec<u8>);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "d")]
struct Page<T> {
    items: Vec<T>,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "e")]
#[serde(bound(serialize = "T: Serialize", deserialize = "T: serde::de::DeserializeOwned"))]
struct Bounded<T, const N: usize>
where
    T: Copy,
{
    #[job(id)]
    id: u64,
    item: T,
}

#[delay_listener]
async fn page(job: Job<Page<u64>>) -> Result<(), JobError> {
    assert!(job.items.is_empty());
    Ok(())
}

#[delay_listener]
async fn bounded(job: Job<Bounded<u64, 3>>) -> Result<(), JobError> {
    assert_eq!(job.item, 7);
    Ok(())
}

#[delay_listener]
async fn change(job: Job<Change>) -> Result<(), JobError> {
    match job.into_payload() {
        Change::Price { of, cents } => Err(format!("{of} {cents}").into()),
        Change::Removed(what) => Err(what.into()),
        Change::Everything => Ok(()),
    }
}

fn main() {
    assert_eq!(Change::DEFAULTS.deliver, dq::job::Delivery::Broadcast);
    assert!(Change::Everything.job_id().is_none() && Unit.job_id().is_none());
    assert_eq!(Page::<u8>::TOPIC, "d");
    assert!(Bounded::<u8, 1> { id: 1, item: 2 }.job_id().is_some());
    let _ = Newtype(Vec::new());
}
