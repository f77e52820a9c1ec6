//! The texts of dq: names, durations and retry policies.
//!
//! The library reads them at run time and the macros read them at compile time; this crate is the one place that says
//! what they may be. Use it through `dq`.

mod duration;
mod name;
mod retry;

pub use duration::{BadDuration, LONGEST_DELAY, parse_duration};
pub use name::{BadName, LONGEST_ID, LONGEST_NAME, check_app, check_id, check_topic};
pub use retry::{BadRetry, RetryPolicy};
