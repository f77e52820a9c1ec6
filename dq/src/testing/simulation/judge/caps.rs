//! How often a job may crash and fail.

use super::Court;
use crate::job::JobId;
use crate::store::memory::JobView;

/// What the settings of a topic allow.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Caps {
    pub(in super::super) crashes: u32,
    /// Failed runs: one more than retries.
    pub(in super::super) attempts: u16,
}

impl Court {
    /// A job is in a place: it has not crashed or failed more often than its topic allows.
    pub(super) fn look_at_caps(&mut self, id: &JobId, version: u64, job: &JobView) {
        let Some(caps) = self.caps else { return };
        if job.crashes > caps.crashes {
            self.bad(format!("[19] {id} ({version}) has {} crashes of at most {}", job.crashes, caps.crashes));
        }
        let attempts = job.record.front().map(|front| front.attempts).unwrap_or_default();
        if attempts > caps.attempts {
            self.bad(format!("[15] {id} ({version}) has failed {attempts} times of at most {}", caps.attempts));
        }
    }
}
