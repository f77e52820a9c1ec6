//! The outcome of a schedule.

use crate::job::{Delivery, JobId, Record};
use crate::time::Timestamp;

/// What a tick of a schedule adds, and what becomes of the schedule (rule 30).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// When the next tick is. One that is not later than this tick is a millisecond later. `None`: the schedule has ended, and the
    /// store removes it.
    pub next: Option<Timestamp>,
    /// The record of the schedule from now on.
    pub schedule: Record,
    /// While this job, that of the last tick, waits, runs or is UNACKED, no job is added, and this is the record of the schedule.
    pub unless: Option<(JobId, Record)>,
    /// The jobs of this tick, and of missed ones. A job whose id is known is left out.
    pub jobs: Vec<TickJob>,
}

/// A job of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickJob {
    /// The job's id.
    pub id: JobId,
    /// When the job is due. A time in the past stays: it says which tick this is.
    pub due: Timestamp,
    /// Whether the job goes to the queue, to the broadcasts, or to both.
    pub deliver: Delivery,
    /// What the store keeps of the job.
    pub record: Record,
}

impl Tick {
    /// The bytes of all records.
    pub fn size(&self) -> usize {
        let skipped = self.unless.as_ref().map_or(0, |(_, record)| record.as_bytes().len());
        let jobs = self.jobs.iter().map(|job| job.record.as_bytes().len()).sum::<usize>();
        jobs + skipped + self.schedule.as_bytes().len()
    }
}
