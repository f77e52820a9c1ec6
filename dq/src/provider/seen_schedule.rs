//! A schedule as a query found it.

use std::time::Duration;

use super::inbox::Inbox;
use super::root::Root;
use crate::job::JobId;
use crate::schedule::{Definition, OnMissed, Origin, Overlap, SchedulePause, Times};
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
    /// Where the schedule comes from.
    pub origin: ScheduleOrigin,
    /// Whether it is paused, and why.
    pub pause: Option<SchedulePause>,
}

/// Where a schedule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduleOrigin {
    /// A call of [`add_schedule`](super::Provider::add_schedule).
    Call,
    /// The code of this program defines it, or a newer or older version of this program.
    ThisProgram,
    /// The code of another program, or of another version of this one: the code of this program defines no schedule of this name. It
    /// goes on until somebody removes it.
    OtherProgram,
}

impl SeenSchedule {
    pub(super) fn new(root: &Root, inbox: &Inbox, name: String, stored: &Stored) -> Self {
        match Definition::read(&stored.record) {
            Ok(definition) => Self::of(root, inbox, name, definition),
            Err(error) => Self { name, details: Err(error) },
        }
    }

    pub(super) fn of(root: &Root, inbox: &Inbox, name: String, schedule: Definition) -> Self {
        let origin = match schedule.origin {
            Origin::Call => ScheduleOrigin::Call,
            Origin::Code { .. } if root.defines(&inbox.key.topic, &name) => ScheduleOrigin::ThisProgram,
            Origin::Code { .. } => ScheduleOrigin::OtherProgram,
        };
        let details = ScheduleDetails {
            times: schedule.ticks.times,
            start: schedule.ticks.start,
            end: schedule.ticks.end,
            on_missed: schedule.on_missed,
            overlap: schedule.overlap,
            jitter: schedule.jitter,
            next: schedule.tick,
            last_job: schedule.last,
            origin,
            pause: schedule.pause,
        };
        Self { name, details: Ok(details) }
    }
}
