//! Ticks: a claimed job that is a schedule needs no handler. Its outcome adds the jobs of the tick and makes it due at the next.

use std::time::Duration;

use super::Topic;
use crate::schedule::{Definition, schedule_name};
use crate::store::step::{Change, Claim, RejoinDue};
use crate::time::Timestamp;

/// When a schedule that this version of dq cannot read is due again: a node that can may take it.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(60);

impl Topic {
    /// The outcome of a claimed schedule at `clock`, the time of the store; `None` if the job is an ordinary one.
    pub(super) fn tick_of(&self, claim: &Claim, clock: Timestamp) -> Option<Change> {
        let name = schedule_name(&claim.id)?;
        let topic = &self.parts.key.topic;
        let schedule = match Definition::read(&claim.record) {
            Ok(schedule) => schedule,
            Err(error) => {
                tracing::error!(%topic, schedule = name, error, "this node cannot read the schedule, and gives it back for a minute: use the version of dq that wrote it, or add the schedule again");
                return Some(Change::Rejoin(RejoinDue::After(UNREADABLE_PAUSE)));
            }
        };
        let (tick, has_missed) = schedule.fire(name, clock);
        if has_missed {
            let (since, jobs) = (schedule.tick, tick.jobs.len());
            tracing::info!(%topic, schedule = name, %since, jobs, "ticks were missed, and the schedule says what becomes of them");
        }
        if tick.next.is_none() {
            tracing::info!(%topic, schedule = name, "the schedule had its last tick, and is removed");
        }
        Some(Change::Tick(Box::new(tick)))
    }
}
