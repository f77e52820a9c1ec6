//! A schedule as a query found it.

use std::time::Duration;

use crate::job::JobId;
use crate::schedule::{Definition, OnMissed, Overlap, Times};
use crate::store::Stored;
use crate::time::Timestamp;

/// A schedule as a query found it; it may have ticked since.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenSchedule {
    /// Its name.
    pub name: String,
    /// Its ticks and policies; the reason if this version of dq cannot read them.
    pub details: Result<ScheduleDetails, String>,
}

/// What a schedule says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleDetails {
    /// When the ticks are.
    pub times: Times,
    /// No tick is before it.
    pub start: Option<Timestamp>,
    /// No tick is after it.
    pub end: Option<Timestamp>,
    /// What becomes of missed ticks.
    pub on_missed: OnMissed,
    /// What becomes of a tick whose predecessor is not done.
    pub overlap: Overlap,
    /// Each job is due up to this long after its tick.
    pub jitter: Duration,
    /// The next tick; one that has passed is missed, or a node adds its job just now.
    pub next: Timestamp,
    /// The id of the job of the last tick; `None` if there was no tick yet. The job may have ended.
    pub last_job: Option<JobId>,
}

impl SeenSchedule {
    pub(super) fn new(name: String, stored: &Stored) -> Self {
        let details = Definition::read(&stored.record).map(|schedule| ScheduleDetails {
            times: schedule.ticks.times,
            start: schedule.ticks.start,
            end: schedule.ticks.end,
            on_missed: schedule.on_missed,
            overlap: schedule.overlap,
            jitter: schedule.jitter,
            next: schedule.tick,
            last_job: schedule.last,
        });
        Self { name, details }
    }
}
