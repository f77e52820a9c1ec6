//! Jobs that are acked before they run: each runs at most once, and is gone when its handler starts (rule 10).
//!
//! The checker relies on its own numbers of runs. A store that fell back may give such a job out again, because it lost the
//! ack; even then each run starts once, after its ack.

use super::record::{Checker, HandlerKind};
use dq::job::{JobId, State};

impl Checker {
    /// The store accepted the ack of a run.
    pub(super) fn note_ack(&mut self, number: u64) {
        let Some(run) = self.runs.get_mut(&number) else { return };
        run.acked = true;
        let version = run.version;
        if self.acks_on_claim {
            self.expected.claimed.insert(version, number);
        }
    }

    /// `on_due` of a job that is acked on claim starts.
    pub(super) fn check_acked(&mut self, id: &JobId, number: u64) {
        let run = &self.runs[&number];
        let (version, acked) = (run.version, run.acked);
        if !acked {
            return self.bad(format!("[10] run {number} of {id} ({version}) starts before it is acked"));
        }
        if run.started.iter().filter(|kind| **kind == HandlerKind::OnDue).count() > 1 {
            return self.bad(format!("[10] run {number} of {id} ({version}) starts twice"));
        }
        let first = *self.isolated.entry(version).or_insert(number);
        if first != number && !self.fell {
            self.bad(format!("[10] {id} ({version}) runs twice: in run {first} and in run {number}"));
        }
        // An ack from a lost part of the store's history removes nothing from the current state.
        let still = self.before.jobs.get(id).filter(|job| super::super::version::version(&job.record) == version);
        if let Some(job) = still.filter(|job| job.state != State::Done)
            && self.expected.claimed.get(&version) == Some(&number)
        {
            self.bad(format!("[10] {id} ({version}) is {}, though it was acked on claim and runs", job.state));
        }
    }
}
