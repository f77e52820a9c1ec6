//! Schedules: when periodic jobs are due.
//!
//! | file | what it has |
//! |---|---|
//! | `times` | the ticks of an interval or a cron line, between a start and an end |
//! | `missed` | what a node does at a tick, and with those that were missed |
//! | `definition` | a schedule as the store keeps it, and what its run asks of the store |

mod definition;
mod missed;
mod times;

pub use definition::Overlap;
#[doc(hidden)]
pub use definition::{Definition, JobOfTick, check_reserved, schedule_id, schedule_name};
#[cfg(feature = "cron")]
pub use dq_grammar::{BadCron, Cron, RepeatedTime, SkippedTime};
pub use missed::OnMissed;
#[doc(hidden)]
pub use missed::{Fired, LATE};
#[doc(hidden)]
pub use times::Ticks;
pub use times::Times;
