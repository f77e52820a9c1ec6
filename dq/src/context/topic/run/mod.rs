//! A run of a handler, as its task on the user's runtime and the topic share it.
//!
//! * [`begin`]: whether and when it began, and until when it may.
//! * [`jobs`]: its jobs, one or those of a batch.
//! * [`task`], [`batch_task`]: what calls the handler; [`making`]: what calls a function that makes a payload.
//! * [`runners`]: the tasks in which handlers run, one after the other.
//! * [`report`]: what all of these report.

mod batch_task;
mod begin;
mod jobs;
mod making;
mod report;
mod runners;
mod task;

pub(super) use batch_task::{BatchReport, BatchWork};
pub(super) use begin::{BEGINS_WITHIN, LeaseEnd};
pub(super) use jobs::{BatchJobs, RunJob, RunJobs};
pub(super) use making::{PayloadFunction, making};
pub(super) use report::{Checkpoint, Ended, Failed, RunEvent, Tasks, change, paced, wanted_retry};
pub(super) use runners::Runners;
pub(super) use task::{PreparedRun, RunTask, Work};
