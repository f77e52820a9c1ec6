//! Lines in the log for what users change, and for who was refused.

use crate::host::Address;
use crate::user::User;

/// The target of the lines.
const TARGET: &str = "dq_dashboard::audit";

pub(crate) fn audit(user: &User, action: &str, topic: &str, id: &str, outcome: &str) {
    tracing::info!(target: TARGET, who = &*user.name, action, topic, job.id = id, outcome, "a user changed something in the dashboard");
}

pub(crate) fn logged_in(user: &User, address: Address) {
    tracing::info!(target: TARGET, who = &*user.name, address = address.word(), "a user logged in to the dashboard");
}

pub(crate) fn refused(address: Address, how: &str) {
    tracing::warn!(target: TARGET, address = address.word(), how, "the dashboard refused a wrong token");
}
