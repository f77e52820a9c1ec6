//! What crashes did to each job: how many were charged, and how the run that was charged last had run.

use super::super::version::version;
use super::record::Checker;
use dq::job::{Cause, State};
use dq::testing::seam::JobView;

impl Checker {
    /// A run is over, and the store keeps its job.
    pub(super) fn note_crash(&mut self, number: u64, job: &JobView, kept: &JobView, reclaimed: bool) {
        debug_assert_eq!(version(&kept.record), number, "it is the same version");
        let record = self.crash_records.entry(number).or_default();
        if kept.crashes > job.crashes {
            record.charged += 1;
            record.last = self.expected.charged.get(&number).copied().unwrap_or_default();
        }
        let by_crashes = || kept.record.metadata().is_ok_and(|metadata| metadata.cause == Some(Cause::Crashes));
        if kept.state == State::Dead && (reclaimed || by_crashes()) {
            self.crashed += 1;
            record.dead = Some(job.row.as_ref().is_some_and(|row| row.isolated));
        }
    }

    /// The versions that were added.
    pub(in crate::simulation) fn added(&self) -> impl Iterator<Item = u64> {
        self.expected.effected.iter().copied()
    }

    /// How many jobs have neither ended nor are DEAD by crashes.
    pub(in crate::simulation) fn open(&self) -> usize {
        self.expected.effected.len() - self.expected.ended.len() - self.crashed
    }

    /// Reports a wrong death by crashes, unless deaths are only counted.
    pub(super) fn bad_crash_death(&mut self, what: String) {
        if !self.only_counts_crash_deaths {
            self.bad(what);
        }
    }
}
