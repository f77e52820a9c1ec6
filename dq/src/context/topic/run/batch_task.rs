//! The task of a batch, on the user's runtime: one call of the handler for many jobs.
//!
//! A job that the batch decides is reported at once, so the end of the task concerns only the others. [`BatchReport`] knows which
//! these are, because the batch may outlive the handler and decide from another task.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::report::{Ended, Failed, RunEvent, Tasks, drop_here, failure_of};
use crate::context::topic::slab::RunId;
use crate::job::Record;
use crate::listener::Delivery;
use crate::listener::Outcomes;
use crate::listener::RunControl;
use crate::listener::{ErasedBatches, Returned};

/// A batch that waits for a runner.
pub(crate) struct BatchWork {
    pub(crate) listener: Arc<dyn ErasedBatches>,
    /// By their places.
    pub(crate) jobs: Vec<(Record, Delivery)>,
    pub(crate) report: Arc<BatchReport>,
    pub(crate) control: Arc<RunControl>,
}

/// What a batch has reported to the topic.
pub(crate) struct BatchReport {
    tasks: Arc<Tasks>,
    run: RunId,
    /// The jobs by their places; `None`: it has its outcome. The number is how many runs have failed if this one fails, too; without
    /// one the listener's `retry_delay` is not asked.
    open: Mutex<Vec<Option<Option<u32>>>>,
}

impl fmt::Debug for BatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchReport").field("run", &self.run).finish_non_exhaustive()
    }
}

impl BatchReport {
    /// A batch of so many jobs as there are numbers of failed runs.
    pub(crate) fn new(tasks: Arc<Tasks>, run: RunId, failed: Vec<Option<u32>>) -> Self {
        Self { tasks, run, open: Mutex::new(failed.into_iter().map(Some).collect()) }
    }

    /// Ends the batch. Returns the places of the jobs without an outcome for which `retry_delay` is asked after a failure, with
    /// the number of failed runs of each.
    pub(crate) fn close(&self) -> Vec<(usize, u32)> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter_mut().enumerate().filter_map(|(place, job)| Some((place, job.take()??))).collect()
    }
}

impl Outcomes for BatchReport {
    fn ended(&self, place: usize, returned: Returned) -> bool {
        let job = self.open.lock().unwrap_or_else(PoisonError::into_inner).get_mut(place).and_then(Option::take);
        let Some(failed) = job else { return false };
        let mut ended = Ended::Returned(returned);
        let asked = failed.and_then(|failed| Some((failed, failure_of(&ended, &self.tasks.environment)?)));
        let (failed, ended) = match asked {
            Some((failed, mut failure)) => {
                let delay = self.tasks.retry_delay(failed, &failure);
                ended.take_error(); // not the last: `failure` has it
                drop_here(failure.take_error());
                (Some(Failed { failure, is_wanted: false }), Ended::Asked(delay))
            }
            None => {
                drop_here(ended.take_error());
                (None, ended)
            }
        };
        self.tasks.send(RunEvent::JobEnded(self.run, place, failed, ended));
        true
    }
}
