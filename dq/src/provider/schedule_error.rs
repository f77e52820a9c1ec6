//! The errors of schedules.

use std::time::Duration;

use humantime::format_duration;

use super::change_error::ChangeError;
use super::error::{AddError, QueryError};
use crate::job::BadName;
use crate::time::BadDuration;

/// Why a schedule was not added, or why it is unknown whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The name is not valid. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// It has no ticks. Nothing was sent.
    #[error(
        "the schedule `{name}` does not say when: write `.every(\"1h\")` or, with the feature `cron`, `.cron(\"0 9 * * *\", \"UTC\")`"
    )]
    NoTicks {
        /// The name.
        name: String,
    },
    /// No tick is left between its start and its end. Nothing was sent.
    #[error("the schedule `{name}` has no tick from now on: look at its start and its end")]
    NeverTicks {
        /// The name.
        name: String,
    },
    /// The interval is too short or too long. Nothing was sent.
    #[error("`every` is {}, 1s to ten years are allowed", format_duration(*.interval))]
    BadInterval {
        /// How long it is.
        interval: Duration,
    },
    /// A text is not a duration. Nothing was sent.
    #[error("`{field}`: {source}")]
    BadDelay {
        /// Which: `every` or `jitter`.
        field: &'static str,
        /// What is wrong with it.
        source: BadDuration,
    },
    /// The cron line or the time zone is not valid. Nothing was sent.
    #[cfg(feature = "cron")]
    #[error(transparent)]
    Cron(crate::schedule::BadCron),
    /// A pause needs a reason of at most 1,024 bytes. Nothing was sent.
    #[error("the pause of a schedule needs a reason of at most {limit} bytes, and this one has {size}")]
    BadReason {
        /// The size of the reason.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The name of who pauses it is over 256 bytes. Nothing was sent.
    #[error("the name of who pauses the schedule has {size} bytes, {limit} are allowed")]
    LongAuthor {
        /// The size of the name.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no schedule of this name.
    #[error("there is no schedule `{name}`")]
    NoSuchSchedule {
        /// The name.
        name: String,
    },
    /// This version of dq cannot read the schedule. It was not changed.
    #[error("this version of dq cannot read the schedule `{name}`, which is as it was: {reason}")]
    Unreadable {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The payload of a schedule of the code cannot be made.
    #[error("the schedule `{name}`: {reason}")]
    Payload {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The store could not be asked for the schedule. Nothing was changed.
    #[error("schedule: {0}")]
    Query(#[from] QueryError),
    /// The schedule is kept as a job, and that was not changed, or it is not known whether it was.
    #[error("schedule: {0}")]
    Change(#[from] ChangeError),
    /// The schedule is kept as a job, and was not added as one; [`AddError::AlreadyExists`] if a schedule of this name exists.
    #[error("schedule: {0}")]
    Add(#[from] AddError),
}
