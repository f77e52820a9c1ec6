//! How often a job may crash and fail, and the other limits of a topic.

use super::record::Checker;
use dq::job::{JobId, NodeId, State};
use dq::testing::seam::JobView;
use dq::time::Timestamp;

/// How many crashes beyond the cap a job may cause before its `on_exhausted` begins.
pub(super) const EXTRA_CRASHES: u32 = 2;

impl Checker {
    /// Checks that a job has not crashed or failed more often than its topic allows.
    pub(super) fn check_caps(&mut self, id: &JobId, version: u64, job: &JobView) {
        let Some(caps) = self.caps else { return };
        let most = caps.crashes + EXTRA_CRASHES;
        if job.crashes > most {
            self.bad(format!("[19] {id} ({version}) has {} crashes of at most {most}", job.crashes));
        }
        let attempts = job.record.metadata().map(|metadata| metadata.attempts).unwrap_or_default();
        if attempts > caps.attempts {
            self.bad(format!("[15] {id} ({version}) has failed {attempts} times of at most {}", caps.attempts));
        }
    }

    /// Checks, when a handler starts, that its node has a permit for it.
    pub(super) fn check_handler_count(&mut self, node: &NodeId) {
        let Some(caps) = self.caps else { return };
        let running = self.node_records.get(node).map_or(0, |record| record.handlers.len());
        if running > caps.permits {
            self.bad(format!("[permits] {node} runs {running} handlers at once, allowed are {}", caps.permits));
        }
    }

    /// Returns whether the retention of a job is over. Users' topics have retentions of their own.
    pub(super) fn may_be_forgotten(&self, job: &JobView, micros: u64) -> bool {
        let (now, Some(at)) = (Timestamp::floor_micros(micros), job.at) else { return false };
        match job.state {
            State::Done => at <= now,
            State::Dead => self.caps.is_none_or(|caps| at.after(caps.dead_retention) <= now),
            State::Delayed | State::Running | State::Unacked => false,
        }
    }
}
