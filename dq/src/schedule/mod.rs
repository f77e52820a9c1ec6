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

pub use definition::{Definition, JobOfTick, Overlap, RESERVED, schedule_id, schedule_name};
pub use missed::{Fired, LATE, OnMissed};
pub use times::{Ticks, Times};
