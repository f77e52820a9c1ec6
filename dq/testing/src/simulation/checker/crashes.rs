//! What crashes do to each job: how many its handlers caused, how many it was charged, and how the charged runs had run
//! (rule 19).

use super::super::version::KILLER;
use super::caps::EXTRA_CRASHES;
use super::record::{Checker, Crashed, Expected};
use dq::job::{Cause, Isolation, JobId, NodeId, State};
use dq::testing::seam::{JobView, Row, View};

/// How the job of a row was started.
pub(super) fn isolation(row: Option<&Row>) -> Option<Isolation> {
    row?.isolation
}

impl Checker {
    /// From this many crashes on, a job is quarantined.
    pub(super) fn is_quarantined(crashes: u32, cap: u32) -> bool {
        crashes + 1 >= cap.max(2)
    }

    /// Checks a job that was charged a crash, or is DEAD by one. Without a `run` the row came back when the store fell back,
    /// so what its node does now proves nothing.
    pub(super) fn check_crash(&mut self, id: &JobId, number: u64, job: &JobView, kept: &JobView, run: Option<u64>) {
        let isolated = isolation(job.row.as_ref()) == Some(Isolation::Alone);
        let record = job.row.as_ref().and_then(|row| self.node_records.get(&row.node));
        let alone = record.zip(run).is_none_or(|(record, run)| {
            let timeout = self.timeout_micros;
            !record.has_handler_beside(run, timeout) && !record.has_listener(timeout) && !self.ran_elsewhere
        });
        let crashed = Crashed { isolated, alone };
        let convicted = kept.state == State::Dead || is_exhausted_by_crashes(kept) && !is_exhausted_by_crashes(job);
        if kept.crashes > job.crashes || convicted {
            self.expected.charged.insert(number, crashed);
        }
        if convicted && !crashed.convicts() {
            self.bad(format!("[19] {id} ({number}) is DEAD by crashes, though it ran as {crashed:?}"));
        }
        if convicted && self.only_jobs_crash && number & KILLER == 0 {
            self.bad(format!("[19] {id} ({number}) is innocent, but is exhausted by crashes"));
        }
    }

    /// The store falls back to a state of which this is expected. A run that was alone then, and made room for others since, counts as alone
    /// again. If its process has died, or dies before the store notes how it runs, the checker cannot judge the crash.
    pub(in crate::simulation) fn falls_back(&mut self, expected: Expected, before: View) {
        let lost = std::mem::replace(&mut self.before, before);
        self.expected = expected;
        self.fell = true;
        for (id, job) in
            self.before.jobs.iter().filter(|(_, job)| isolation(job.row.as_ref()) == Some(Isolation::Alone))
        {
            let Some(row) = &job.row else { continue };
            let was = lost.jobs.get(id).and_then(|job| job.row.as_ref()).filter(|was| was.token == row.token);
            if was.is_none_or(|was| was.isolation != row.isolation)
                && let Some(run) = self.expected.rows.get(&(row.node.clone(), id.clone()))
            {
                self.signs_back.insert(*run);
            }
        }
    }

    /// Returns whether something of this topic runs on a node, or ran there when it died.
    pub(in crate::simulation) fn has_run_on(&self, node: &NodeId) -> bool {
        let timeout = self.timeout_micros;
        // No run has the number 0.
        self.node_records
            .get(node)
            .is_some_and(|record| record.has_handler_beside(0, timeout) || record.has_listener(timeout))
    }

    /// A handler of this version is about to kill its process.
    pub(in crate::simulation) fn causes_crash(&mut self, number: u64) {
        let record = self.crash_records.entry(number).or_default();
        record.caused += 1;
        if record.final_polled {
            return;
        }
        let (caused, most) = (record.caused, self.caps.map_or(u32::MAX, |caps| caps.crashes + EXTRA_CRASHES));
        if caused > most && self.only_jobs_crash {
            self.bad(format!("[19] {number} caused {caused} crashes before its on_exhausted"));
        }
    }

    /// An outcome that lets the job run again, or a requeue, was accepted: crashes count from here on.
    pub(super) fn forgets_crashes(&mut self, number: u64) {
        if let Some(record) = self.crash_records.get_mut(&number) {
            (record.caused, record.final_polled) = (0, false);
        }
    }
}

fn is_exhausted_by_crashes(job: &JobView) -> bool {
    job.record.metadata().is_ok_and(|metadata| metadata.exhausted && metadata.cause == Some(Cause::Crashes))
}
