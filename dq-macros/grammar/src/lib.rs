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
pub use cron::{Cron, InvalidCron, RepeatedTime, SkippedTime};
pub use duration::{MAX_DELAY, MAX_UNIQUE, MIN_INTERVAL, MIN_UNIQUE, parse_duration};
pub use name::{InvalidName, MAX_ID, MAX_NAME, MAX_SCHEDULE, check_app, check_id, check_schedule, check_topic};
pub use rate::Rate;
pub use retry::RetryPolicy;
pub use settings::{ATTRIBUTE_KEYS, AttributeKey, DAY, HOUR, Kind, MINUTE, MS, SECOND};
pub use time::parse_time;

/// The name that dq has for what the documents that it implements call by this one. Any other name stays as it is.
#[doc(hidden)]
pub fn present_name(name: &str) -> &str {
    match name {
        "crash_rollback" => "rollback_on_shutdown",
        "final_retry" => "on_exhausted",
        "process_unacked" => "on_park_timeout",
        name => name,
    }
}

/// A text or a number cannot be the value that is wanted. It displays as what is wrong, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(String);

impl InvalidValue {
    /// The error with this text.
    #[doc(hidden)]
    pub fn new(what_to_write: impl Into<String>) -> Self {
        Self(what_to_write.into())
    }
}
