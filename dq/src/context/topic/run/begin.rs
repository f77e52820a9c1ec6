//! Begin: when a run may begin. Whether it did is in its [`RunControl`](crate::listener::RunControl).

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Duration;

/// How long a run may wait for its first poll. Then its job goes back without an attempt, and the topic claims nothing until
/// the runtime begins handlers again.
pub(crate) const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// When the lease ends, for the tasks of runs: a handler starts at the first poll of its task, long after the topic handed it
/// over if the process was paused meanwhile.
#[derive(Debug, Default)]
pub(crate) struct LeaseEnd(AtomicU64);

impl LeaseEnd {
    /// Whether the lease is provably valid.
    pub(crate) fn is_good(&self, now: Duration) -> bool {
        now < Duration::from_nanos(self.0.load(Acquire))
    }

    /// The lease ends then.
    pub(crate) fn set(&self, end: Duration) {
        self.0.store(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX), Release);
    }
}
