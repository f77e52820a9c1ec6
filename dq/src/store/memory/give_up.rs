//! The step `give_up`: a job that no node can decode becomes DEAD, with its payload.

use super::now::Now;
use super::places::{Place, TimedPlace};
use super::topic::Topic;
use crate::job::Cause;
use crate::store::{GiveUp, JobMove, kept_of};

impl Topic {
    /// Gives the job up, if it waits, is parked or is DEAD, and has the payload that was read. O(log n).
    pub(crate) fn give_up_undecodable(&mut self, now: Now, job: &GiveUp) -> bool {
        let Some(mut slot) = self.jobs.get_mut(&job.id) else { return false };
        let Place::Timed(place, _) = slot.place else { return false };
        if place == TimedPlace::Done || kept_of(&slot.record) != job.kept() {
            return false;
        }
        slot.set_metadata(&job.metadata());
        slot.set_crashes(0);
        if place != TimedPlace::Dead {
            self.jobs.move_to(&job.id, TimedPlace::Dead, now.floor());
            self.moves.note(&job.id, || JobMove::Dead { cause: Some(Cause::Decode), node: String::new() });
        }
        true
    }
}
