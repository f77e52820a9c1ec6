//! Jobs that a smaller run leaves out: the work adds them and is told that they were added, and nothing is.
//!
//! Whether the check passes_without that is asked apart, see `shrink.rs`: it may count the jobs.

use super::super::process::Process;
use super::super::sync::lock;
use super::only::name_of;
use super::program::{Program, WORK};
use dq::job::TopicKey;
use dq::store::{NewJob, Numbered};

impl Program {
    /// Takes the jobs out of a batch of the work that are to be left out, and notes the others.
    pub(super) fn without_left_out(
        &self,
        process: &Process,
        key: &TopicKey,
        batch: &mut Numbered<NewJob>,
    ) -> Vec<usize> {
        let mut places = Vec::new();
        if process.name != WORK {
            return places;
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
        places
    }
}
