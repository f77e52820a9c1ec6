//! The rules for the texts that dq reads: names, durations, times, rates, retry policies, what blocks a group, and settings.
//!
//! The library reads them at run time, the macros at compile time, and both by these rules. Use this crate through
//! `dq`.

mod blocked;
#[cfg(feature = "cron")]
mod cron;
mod duration;
mod name;
mod rate;
mod retry;
mod settings;
mod time;

pub use blocked::{BlockedBy, OnBlocked};
#[cfg(feature = "cron")]
pub use cron::{BadCron, Cron, RepeatedTime, SkippedTime};
pub use duration::{LONGEST_DELAY, LONGEST_UNIQUE, SHORTEST_INTERVAL, SHORTEST_UNIQUE, parse_duration};
pub use name::{BadName, LONGEST_ID, LONGEST_NAME, LONGEST_SCHEDULE, check_app, check_id, check_schedule, check_topic};
pub use rate::Rate;
pub use retry::RetryPolicy;
pub use settings::{ATTRIBUTE_KEYS, AttributeKey, DAY, HOUR, Kind, MINUTE, MS, SECOND};
pub use time::parse_time;

/// A text or a number cannot be the value that is wanted. It displays as what is wrong, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    /// The error with this text.
    #[doc(hidden)]
    pub fn new(what_to_write: impl Into<String>) -> Self {
        Self(what_to_write.into())
    }
}
