//! A version that took effect in a step exists afterwards: as a job, a broadcast, or both (rules 2, 13 and 24).

use super::super::version::version;
use super::record::{Checker, Did};
use dq::job::{JobId, Record};
use dq::store::AddOutcome;
use dq::testing::seam::View;

impl Checker {
    /// Checks that every version that took effect in a step exists.
    pub(super) fn check_taken_effect(&mut self, did: &Did, before: &View, after: &View) {
        match did {
            Did::Add { jobs } => {
                for (job, outcome) in jobs {
                    let version = version(&job.record);
                    if matches!(outcome, AddOutcome::Added | AddOutcome::Replaced(_)) {
                        self.check_parts(&job.id, version, after);
                    }
                }
            }
            Did::Settle { .. } | Did::Reclaim { .. } => {
                for (id, job) in &before.jobs {
                    let Some((record, _)) = &job.replacement else { continue };
                    let waited = version(record);
                    let is_it = |record: &Record| version(record) == waited;
                    let came = after.jobs.get(id).is_some_and(|job| is_it(&job.record));
                    if came || after.broadcasts.get(id).is_some_and(|(_, record)| is_it(record)) {
                        self.check_parts(id, waited, after);
                    }
                }
            }
            _ => {}
        }
    }

    /// A version has taken its place. Checks that it is a job, a broadcast or both, as it was added.
    fn check_parts(&mut self, id: &JobId, new: u64, after: &View) {
        let is = |record: &Record| version(record) == new;
        let job = after.jobs.get(id).is_some_and(|job| is(&job.record));
        let publish = after.broadcasts.get(id).is_some_and(|(_, record)| is(record));
        let wanted = self.expected.broadcasts.parts(new);
        if (job, publish) != wanted {
            self.bad(format!("[24] {id} ({new}) is there as (job, broadcast): {:?}, not {wanted:?}", (job, publish)));
        }
    }
}
