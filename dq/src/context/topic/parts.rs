//! What a topic is made from, which all of its owners share and none of them changes.

use std::sync::Arc;
use std::time::Duration;

use super::stats::TopicStats;
use super::window::WaitingBytes;
use crate::config::{NodeSettings, TopicSettings};
use crate::context::node_permits::Share;
use crate::environment::Environment;
use crate::job::{Cause, JobId, TopicKey};
use crate::listener::erased::ErasedListener;
use crate::schedule::Periodic;
use crate::store::{Outage, WARNING_PAUSE};

/// How many jobs a line of the log, or `health()`, names at most.
pub(super) const MOST_SHOWN: usize = 16;

/// What a topic is made from. The supervisor keeps it, so that the topic can start again after a panic of its task.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) key: TopicKey,
    pub(crate) listener: Arc<dyn ErasedListener>,
    pub(crate) topic: TopicSettings,
    pub(crate) node: NodeSettings,
    pub(crate) environment: Environment,
    pub(crate) stats: Arc<TopicStats>,
    pub(crate) permits: Share,
    /// Shared by all topics of the node.
    pub(crate) waiting: WaitingBytes,
    /// The outages of the node.
    pub(crate) outage: Outage,
    /// The schedules that the code defines.
    pub(crate) schedules: Arc<[Periodic]>,
}

impl Parts {
    /// Logs and counts that the handler of a job that was acked on claim has failed.
    pub(super) fn report_lost(&self, id: &JobId, failure: &str, cause: Option<Cause>) {
        tracing::error!(topic = %self.key.topic, job.id = %id, failure, "the handler failed after its job was acked on claim: the job is lost");
        self.stats.failed(cause);
    }
}

/// When a warning was logged last.
#[derive(Debug, Default)]
pub(super) struct Warned(Option<Duration>);

impl Warned {
    /// Whether it is time to warn again; then it counts as done.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.0.is_none_or(|last| now >= last + WARNING_PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_once_a_minute() {
        let mut warned = Warned::default();
        let due = [0, 1, 59, 60, 61, 119, 120].map(|second| warned.is_due(Duration::from_secs(second)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }
}
