//! Functions: with and without a channel, with dependencies by value, by reference and unnamed, with a boxed error.

use dq::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

use dq::listener::{Declared, Injector, Registration};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "plain")]
struct Plain(u64);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "deciding")]
struct Deciding(u64);

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "late-job")]
pub struct LateJob(u64);

pub struct Orders;

type Boxed = Box<dyn std::error::Error + Send + Sync>;

/// The documentation stays with the function.
#[delay_listener]
async fn plain(job: Job<Plain>) -> Result<(), JobError> {
    assert_eq!(job.0, 7);
    Ok(())
}

#[delay_listener(topic = "deciding", timeout = "none")]
pub(crate) async fn deciding(
    mut job: dq::Job<Deciding>,
    orders: &Arc<Orders>,
    names: Arc<Mutex<Vec<String>>>,
    _: u8,
    fixed: &'static str,
    channel: dq::Channel,
) -> Result<Decided, JobError> {
    job = job;
    names.lock().map_err(|_| "poisoned")?.push(format!("{fixed} {} {}", job.0, Arc::strong_count(orders)));
    tokio::task::yield_now().await;
    Ok(channel.rejoin())
}

#[delay_listener(register = false)]
pub async fn late_job(orders: &Arc<Orders>, channel: Channel, job: Job<LateJob>) -> Result<Decided, Boxed> {
    let _ = (orders, job.0);
    Ok(channel.ack())
}

#[delay_listener(register = false)]
async fn r#try(_job: Job<Plain>, r#type: &u8) -> Result<(), &'static str> {
    if *r#type == 0 { Err("zero") } else { Ok(()) }
}

fn main() {
    let all = Registration::all();
    let mut names: Vec<_> = all.iter().map(|registration| registration.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["deciding", "plain"]);
    let fields: Vec<_> = deciding::dependencies().iter().map(|needs| (needs.field, needs.written)).collect();
    let expected = [
        ("orders", "Arc<Orders>"),
        ("names", "Arc<Mutex<Vec<String>>>"),
        ("dependency_2", "u8"),
        ("fixed", "&'static str"),
    ];
    assert_eq!(fields, expected);
    assert_eq!((r#try::NAME, r#try::dependencies()[0].field), ("try", "type"));
    let mut injector = Injector::default();
    injector.provide(Arc::new(Orders), None);
    assert!(late_job::inject(&injector).is_ok());
    assert_eq!(deciding::inject(&injector).err().unwrap().type_name, std::any::type_name::<Arc<Mutex<Vec<String>>>>());
}
