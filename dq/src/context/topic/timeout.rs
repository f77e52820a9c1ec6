//! Timeouts of handlers, kept on dq's own thread: a handler that blocks its own cannot stop them.
//!
//! A handler that times out is given up first (its token fires, its future is dropped at the next `await`) and settled as
//! timed out then. One that blocks its thread goes on; it keeps its permit until it returns, and its outcome is refused.

use std::time::Duration;

use super::Topic;
use super::run_end::Ended;
use crate::job::Cause;
use crate::listener::Failure;
use crate::listener::erased::Returned;

impl Topic {
    /// Gives up every handler whose time is over.
    pub(super) fn expire_timeouts(&mut self, now: Duration) -> Option<Duration> {
        while let Some((run_id, deadline)) = self.runs.first_deadline() {
            if now < deadline {
                return Some(deadline);
            }
            let timeout = self.parts.topic.timeout;
            let Some(run) = self.runs.give_up(run_id, timeout) else { continue };
            let after = humantime::format_duration(timeout.unwrap_or_default());
            tracing::warn!(topic = %self.parts.key, job.id = %run.id, "the handler did not return within {after}");
            self.parts.stats.timed_out();
            if !run.detached && self.held.under(&run.id, run.token).is_some() {
                let failure = Failure::new(Cause::Timeout, format!("the handler did not return within {after}"));
                self.decide(&run.id, &run.call, Ended::Returned(Returned::Failed(failure)));
            }
        }
        None
    }
}
