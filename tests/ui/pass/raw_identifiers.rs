//! Raw identifiers in every place where a name can stand.

use dq::listener::{Declared, Registration};
use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[allow(non_camel_case_types)]
#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "raw", id = "{type}:{match}")]
struct r#struct {
    r#type: u64,
    r#match: String,
}

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "marked")]
struct Marked {
    #[job(id)]
    r#fn: u64,
}

mod r#mod {
    pub(crate) async fn r#loop(_job: dq::Job<super::r#struct>, _cause: &dq::Failure) {}
}

#[delay_listener(on_exhausted = "r#mod::r#loop")]
async fn r#async(job: Job<r#struct>, r#dyn: &u8, r#in: u16, r#box: Channel) -> Result<Decided, JobError> {
    let _ = (job.r#type, r#dyn, r#in);
    Ok(r#box.ack())
}

#[allow(non_camel_case_types)]
#[delay_listener]
struct r#enum {
    r#ref: u8,
    #[inject(default)]
    r#use: u64,
}

impl DelayListener for r#enum {
    type Job = Marked;

    async fn on_due(&self, _job: Job<Marked>, channel: Channel) -> Result<Decided, JobError> {
        let _ = (self.r#ref, self.r#use);
        Ok(channel.ack())
    }
}

#[allow(non_camel_case_types)]
#[broadcast_listener(channels = ["prices"])]
struct r#trait {
    r#as: u8,
}

impl BroadcastListener for r#trait {
    type Message = Marked;

    async fn on_message(&self, _: Broadcast<Marked>) -> Result<(), JobError> {
        let _ = self.r#as;
        Ok(())
    }
}

fn main() {
    let payload = r#struct { r#type: 7, r#match: "a".into() };
    assert_eq!(payload.job_id().unwrap().unwrap().as_str(), "7:a");
    let names: Vec<_> = Registration::all().iter().map(|registration| registration.name).collect();
    assert_eq!(names, ["async", "enum", "trait"]);
    let fields: Vec<_> = <r#async as Declared>::dependencies().iter().map(|needs| needs.field).collect();
    assert_eq!(fields, ["dyn", "in"]);
}
