//! A run of a handler, as its task on the user's runtime and the topic share it.
//!
//! * [`jobs`]: its jobs, one or those of a batch.
//! * [`task`]: what calls the handler, for one job or a batch; [`making`]: what calls a function that makes a payload.
//! * [`runners`]: the tasks in which handlers run, one after the other.
//! * [`report`]: what all of these report, and what they share.

mod jobs;
mod making;
mod report;
mod runners;
mod task;

pub(super) use jobs::{BatchJobs, RunJob, RunJobs};
pub(super) use making::{PayloadFunction, making};
pub(super) use report::{
    BEGINS_WITHIN, Checkpoint, Ended, Failed, LeaseEnd, RunEvent, Tasks, change, wanted_retry,
};
pub(super) use runners::Runners;
pub(super) use task::{BatchReport, BatchWork, PreparedRun, RunTask, Work};
