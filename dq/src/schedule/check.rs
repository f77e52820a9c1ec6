//! What a schedule in a store may be: no version of dq writes one over a limit of the format.

use super::bad_schedule::InvalidSchedule;
use super::definition::{Definition, JobOfTick};
use super::times::Times;
use crate::job::limits::{INTERVAL, OverLimit, SCHEDULE_NAME, SCHEDULE_PAYLOAD, TIME};
use crate::job::{InvalidName, InvalidRecord, JobId, Metadata, Record};
use crate::time::{Timestamp, millis_ceil};

/// What the ids of dq's own jobs begin with, and no id that a program chooses.
const RESERVED: &str = "dq:";

/// Checks that a program may choose this id.
///
/// # Errors
/// [`InvalidName`] if it is one of dq's own.
pub fn check_reserved(id: &JobId) -> Result<(), InvalidName> {
    match id.as_str().starts_with(RESERVED) {
        true => Err(InvalidName {
            what: "job id",
            name: id.as_str().chars().take(140).collect(),
            why: format!("begins with `{RESERVED}`, as only the ids of dq's own jobs do: choose another"),
        }),
        false => Ok(()),
    }
}

/// Reads the metadata of a job that a store had, and checks all of the job by the limits of the format: if it keeps a schedule, that
/// too.
///
/// # Errors
/// [`InvalidRecord`]. A schedule that another version of dq may read is none.
pub fn checked(id: &JobId, record: &Record) -> Result<Metadata, InvalidRecord> {
    if let Some(name) = id.schedule_name() {
        SCHEDULE_NAME.check(name.len() as u64)?;
        if let Err(InvalidSchedule::OverLimit(over)) = Definition::read(record) {
            return Err(over.into());
        }
    }
    record.checked()
}

impl Definition {
    /// Checks what was read.
    pub(super) fn check(&self) -> Result<(), OverLimit> {
        #[cfg_attr(not(feature = "cron"), expect(irrefutable_let_patterns, reason = "a cron line has no interval"))]
        if let Times::Every(interval) = &self.ticks.times {
            INTERVAL.check(millis_ceil(*interval))?;
        }
        let times = [Some(self.tick), self.ticks.start, self.ticks.end, self.gap]
            .into_iter()
            .flatten()
            .map(Timestamp::as_millis);
        let periods = [self.jitter, self.job.expires_after.unwrap_or_default()].map(millis_ceil);
        times.chain(periods).try_for_each(|ms| TIME.check(ms))?;
        self.job.check()
    }
}

impl JobOfTick {
    /// Checks the jobs of a schedule by the limits of the format.
    pub(crate) fn check(&self) -> Result<(), OverLimit> {
        SCHEDULE_PAYLOAD.check(self.record.payload_length())?;
        self.record.check_new()
    }
}
