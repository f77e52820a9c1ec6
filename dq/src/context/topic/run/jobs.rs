//! The jobs of a run: one, or those of a batch that are not decided yet.

use std::sync::Arc;

use crate::context::topic::slab::HeldId;
use crate::job::JobId;
use crate::listener::RunControl;

/// A job of a run.
#[derive(Debug)]
pub(crate) struct RunJob {
    /// For the log: the job may not be held any more.
    pub(crate) id: JobId,
    pub(crate) held: HeldId,
    /// Asks the handler to stop working on it.
    pub(crate) control: Arc<RunControl>,
}

/// The jobs of a run.
#[derive(Debug)]
pub(crate) enum RunJobs {
    One(RunJob),
    Batch(BatchJobs),
}

/// The jobs of a batch by their places in it; `None`: it is decided, or this node does not hold it any more.
#[derive(Debug)]
pub(crate) struct BatchJobs {
    jobs: Vec<Option<RunJob>>,
    left: usize,
    /// Of the records of all jobs.
    pub(crate) bytes: usize,
    /// Controls the whole batch.
    control: Arc<RunControl>,
}

impl RunJobs {
    /// A batch with these jobs, whose controls are of the batch `control`.
    pub(crate) fn batch(jobs: Vec<RunJob>, bytes: usize, control: Arc<RunControl>) -> Self {
        let left = jobs.len();
        Self::Batch(BatchJobs { jobs: jobs.into_iter().map(Some).collect(), left, bytes, control })
    }

    /// These jobs, which have no place in a batch of the user any more.
    pub(crate) fn all(jobs: Vec<RunJob>) -> Self {
        Self::batch(jobs, 0, Arc::default())
    }

    /// How many jobs are not decided.
    pub(crate) const fn left(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Batch(batch) => batch.left,
        }
    }

    /// The jobs that are not decided.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &RunJob> {
        let (one, batch) = match self {
            Self::One(job) => (Some(job), &[][..]),
            Self::Batch(batch) => (None, &batch.jobs[..]),
        };
        one.into_iter().chain(batch.iter().flatten())
    }

    /// The id, if it is no batch.
    pub(crate) const fn only(&self) -> Option<&JobId> {
        match self {
            Self::One(job) => Some(&job.id),
            Self::Batch(_) => None,
        }
    }

    /// Whether and when the task of the run was polled for the first time, and what ends it early.
    pub(crate) const fn control(&self) -> &Arc<RunControl> {
        match self {
            Self::One(job) => &job.control,
            Self::Batch(batch) => &batch.control,
        }
    }

    /// Asks the handler to stop working on this job.
    pub(crate) fn cancel_job(&self, id: HeldId) {
        match self {
            Self::One(job) => job.control.cancel(),
            Self::Batch(batch) => {
                if let Some(job) = batch.jobs.iter().flatten().find(|job| job.held == id) {
                    job.control.cancel();
                }
            }
        }
    }

    /// The jobs with their places.
    pub(crate) fn into_list(self) -> Vec<(usize, RunJob)> {
        match self {
            Self::One(job) => vec![(0, job)],
            Self::Batch(batch) => {
                batch.jobs.into_iter().enumerate().filter_map(|(place, job)| Some((place, job?))).collect()
            }
        }
    }
}

impl BatchJobs {
    /// How many jobs are not decided.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// Takes out the job at this place.
    pub(crate) fn take(&mut self, place: usize) -> Option<RunJob> {
        let job = self.jobs.get_mut(place)?.take()?;
        self.left -= 1;
        Some(job)
    }

    /// Where this job is.
    pub(crate) fn place(&self, id: HeldId) -> Option<usize> {
        self.jobs.iter().position(|job| job.as_ref().is_some_and(|job| job.held == id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::topic::slab::{OfHeld, Slab};

    #[test]
    fn each_job_leaves_its_batch_once_and_the_others_keep_their_places() {
        let (all, mut slab) = (Arc::<RunControl>::default(), Slab::<OfHeld, ()>::default());
        let [a, b, c] = ["a", "b", "c"].map(|id| RunJob {
            id: JobId::new(id).unwrap(),
            held: slab.insert(()),
            control: RunControl::of_batch(&all),
        });
        let second = b.held;
        let mut jobs = RunJobs::batch(vec![a, b, c], 7, all.clone());
        jobs.cancel_job(second);
        let RunJobs::Batch(batch) = &mut jobs else { panic!("it is a batch") };
        assert_eq!(batch.place(second), Some(1));
        let taken = batch.take(1).unwrap();
        assert_eq!((taken.id.as_str(), taken.control.is_cancelled()), ("b", true));
        assert!(batch.take(1).is_none() && batch.take(9).is_none());
        assert_eq!((batch.left(), batch.place(second)), (2, None));
        let left: Vec<_> = jobs.into_list().into_iter().map(|(place, job)| (place, job.id.to_string())).collect();
        assert_eq!(left, [(0, "a".into()), (2, "c".into())]);
        assert!(!all.is_cancelled());
    }
}
