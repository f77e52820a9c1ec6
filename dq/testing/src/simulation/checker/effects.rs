//! What a step says it did is there afterwards.

use super::super::version::version;
use super::record::{Checker, Did};
use dq::job::{JobId, Record};
use dq::store::AddOutcome;
use dq::testing::seam::View;

impl Checker {
    pub(super) fn check_effects(&mut self, did: &Did, before: &View, after: &View) {
        match did {
            Did::Add { jobs } => {
                for (job, outcome) in jobs {
                    self.check_added((&job.id, version(&job.record)), outcome, after);
                }
            }
            Did::Change { items } => self.check_changes(items, before, after),
            Did::Settle { outcomes, .. } => {
                for (outcome, _) in outcomes {
                    self.check_result(&outcome.id, [before, after].map(|view| view.jobs.get(&outcome.id)));
                }
            }
            _ => {}
        }
    }

    /// A version whose add took effect is there: as a job, a broadcast or both, or it waits for the end of a run.
    fn check_added(&mut self, (id, new): (&JobId, u64), outcome: &AddOutcome, after: &View) {
        let is_it = |record: &Record| version(record) == new;
        let job = after.jobs.get(id);
        let waits = job.and_then(|job| job.replacement.as_ref()).is_some_and(|(record, _)| is_it(record));
        let has = (
            job.is_some_and(|job| is_it(&job.record)),
            after.broadcasts.get(id).is_some_and(|(_, record)| is_it(record)),
        );
        let there = match outcome {
            AddOutcome::Added | AddOutcome::Replaced(_) => has == self.expected.broadcasts.parts(new),
            AddOutcome::ReplacementWaits | AddOutcome::ReplacementIfEnds => waits,
            AddOutcome::Extended { .. } => waits || has.0 || has.1,
            AddOutcome::Exists(_)
            | AddOutcome::Deleted
            | AddOutcome::Repeated
            | AddOutcome::Later
            | AddOutcome::TopicFull(_)
            | AddOutcome::GroupFull { .. }
            | AddOutcome::TooHeavy(_)
            | AddOutcome::Refused(_) => true,
            AddOutcome::Buffered => false,
        };
        if !there {
            self.bad(format!("[18] LOST: the add of {new} ({id}) is answered {outcome:?}: it is {has:?}, {job:?}"));
        }
    }
}
