//! Jobs that a smaller run leaves out: the work adds them and is told that they were added, and nothing is.
//!
//! Whether the check bears that is asked apart, see `shrink.rs`: it may count the jobs.

use super::super::cluster::lock;
use super::super::process::Process;
use super::only::name_of;
use super::program::{Program, WORK};
use dq::job::TopicKey;
use dq::store::{AddOutcome, BatchAnswer, NewJob, Numbered};

/// The places of the jobs of a batch that were left out.
#[derive(Debug)]
pub(in crate::simulation) struct LeftOut(Vec<usize>);

impl LeftOut {
    /// The answer to the whole batch.
    pub(in crate::simulation) fn put_back(self, mut answer: BatchAnswer<AddOutcome>) -> BatchAnswer<AddOutcome> {
        if let BatchAnswer::Done(outcomes) = &mut answer {
            for place in self.0 {
                outcomes.insert(place.min(outcomes.len()), AddOutcome::Added);
            }
        }
        answer
    }
}

impl Program {
    /// Takes the jobs out of a batch of the work that are to be left out, and notes the others.
    pub(in crate::simulation) fn leave_out(
        &self,
        process: &Process,
        key: &TopicKey,
        batch: &mut Numbered<NewJob>,
    ) -> LeftOut {
        let mut places = Vec::new();
        if process.name != WORK {
            return LeftOut(places);
        }
        let mut place = 0;
        batch.items.retain(|job| {
            let name = name_of(&key.topic, &job.id);
            let stays = self.only_jobs.as_ref().is_none_or(|only| only.contains(&name));
            if stays {
                lock(&self.added).insert(name);
            } else {
                places.push(place);
            }
            place += 1;
            stays
        });
        LeftOut(places)
    }
}
