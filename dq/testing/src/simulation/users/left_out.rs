//! Jobs that a smaller run leaves out: the work learns that they were added, but they never reach the store.
//!
//! `shrink.rs` finds out whether the check passes without them, because a check may count the jobs.

use super::super::process::Process;
use super::super::sync::lock;
use super::only::name_of;
use super::program::{Program, WORK};
use dq::job::TopicKey;
use dq::store::{NewJob, Numbered};

impl Program {
    /// Takes the left-out jobs out of a batch of the work, records the others, and returns the places of those taken out.
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
