//! Schedules: when periodic jobs are due.
//!
//! | file | what it has |
//! |---|---|
//! | `times` | the ticks of an interval or a cron line, between a start and an end |
//! | `missed` | what a node does at a tick, and with those that were missed |
//! | `periodic` | the schedules that the code of a program defines |
//! | `bad_schedule` | why a record is not a schedule |
//! | `check` | what a schedule in a store may be |
//! | `tick` | what a tick asks of the store |
//! | `definition` | a schedule as the store keeps it, and what its run asks of the store |
//! | `catch_up` | how missed ticks follow one after the other where no two jobs may overlap |
//! | `ahead` | a next tick that was computed while the store's clock was ahead |

mod ahead;
mod bad_schedule;
mod catch_up;
mod check;
mod definition;
mod missed;
mod periodic;
#[cfg(test)]
mod tests;
mod tick;
mod times;

#[doc(hidden)]
pub use ahead::CLOCK_SLACK;
#[doc(hidden)]
pub use bad_schedule::InvalidSchedule;
#[doc(hidden)]
pub use check::{check_reserved, checked};
#[doc(hidden)]
pub use definition::{Definition, JobOfTick, Origin, schedule_id, schedule_name};
pub use definition::{Overlap, SchedulePause};
#[cfg(feature = "cron")]
pub use dq_grammar::{Cron, InvalidCron, RepeatedTime, SkippedTime};
pub use missed::OnMissed;
#[doc(hidden)]
pub use missed::{Fired, LATE};
#[doc(hidden)]
pub use periodic::{HasSchedules, Made, PayloadOf, Periodic, PeriodicSet, PeriodicTimes, encoded, made};
pub use tick::{Tick, TickJob};
#[doc(hidden)]
pub use times::Ticks;
pub use times::Times;
