//! A step that panics, which is a defect of dq: its topic goes on (rule 34).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use super::super::cell::Cell;
use super::super::durable::Waits;
use super::super::now::Now;
use super::super::places::{Place, Slot, TimedPlace};
use super::super::topic::Topic;
use crate::environment::StoreClock;
use crate::job::{Codec, JobId, Metadata, Record};
use crate::store::{Pending, StoreError};
use crate::time::Timestamp;

#[derive(Debug)]
struct Still;

impl StoreClock for Still {
    fn micros(&self) -> u64 {
        1_000_000
    }
}

fn add(topic: &mut Topic, id: &str) {
    let record = Record::new(&Metadata::default(), Codec::Json, b"{}");
    let place = Place::Timed(TimedPlace::Delayed, Timestamp::from_millis(5));
    topic.jobs.insert(JobId::new(id).unwrap(), Slot::new(record, 0, place));
}

#[tokio::test]
async fn a_step_that_panics_leaves_each_job_in_one_place_and_its_topic_goes_on() {
    let cell = Cell::new(Arc::new(Still), Topic::default(), None);
    let panicking = |cell: &Cell| -> Pending<()> {
        cell.ask("test", Waits::CHANGES, |topic: &mut Topic, _: Now| -> Result<(), StoreError> {
            add(topic, "a");
            add(topic, "b");
            topic.jobs.break_index();
            resume_unwind(Box::new("a planted panic"))
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(|| drop(panicking(&cell)))).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a planted panic"));
    let look = |topic: &mut Topic, _: Now| Ok((topic.jobs.len(), topic.jobs.is_consistent()));
    assert_eq!(cell.ask("test", Waits::CHANGES, look).await.unwrap(), (2, true));
}
