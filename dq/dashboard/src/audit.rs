//! A line in the log for everything that somebody changes.

use crate::access::User;

/// The target of the lines.
pub(crate) const TARGET: &str = "dq_dashboard::audit";

pub(crate) fn audit(user: &User, action: &str, topic: &str, id: &str, outcome: &str) {
    tracing::info!(target: TARGET, who = &*user.0, action, topic, job.id = id, outcome, "the dashboard did what somebody asked for");
}
