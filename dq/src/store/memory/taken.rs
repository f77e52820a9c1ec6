//! The ids that stay taken for a time after their add, whatever becomes of their jobs (rule 18).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kept::{Item, Kept};
use super::now::Now;
use super::places::bytes_of_row;
use crate::job::JobId;
use crate::time::Timestamp;

/// How many ids whose time is over a step forgets at most.
const FORGOTTEN: usize = 100;

/// How long after its time an id is forgotten: a clock that jumps back by less finds it taken again.
const SLACK: Duration = Duration::from_secs(3_600);

/// Until when an id is taken, and whether its last job was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TakenId {
    pub(super) until: Timestamp,
    pub(super) was_deleted: bool,
}

impl Item<JobId> for TakenId {
    fn end(&self) -> Option<Timestamp> {
        Some(self.until)
    }

    fn bytes(&self, id: &JobId) -> u64 {
        bytes_of_taken(id)
    }
}

/// What a taken id takes in memory, about.
pub(super) fn bytes_of_taken(id: &JobId) -> u64 {
    bytes_of_row(id, 0)
}

/// The taken ids of a topic. Those whose time is over count as free; each step forgets some of them.
pub(super) type TakenIds = Kept<JobId, TakenId>;

impl TakenIds {
    /// What is known of an id that is taken now.
    pub(super) fn now(&self, now: Now, id: &JobId) -> Option<TakenId> {
        self.get(id).copied().filter(|taken| taken.until > now.floor())
    }

    /// A job with this id was added. The time of an earlier add still holds.
    pub(super) fn added(&mut self, now: Now, id: &JobId, unique_for: Option<Duration>) {
        let old = self.now(now, id);
        let until = old.map(|old| old.until).max(unique_for.map(|time| now.after(time)));
        let new = until.map(|until| TakenId { until, was_deleted: false });
        if new.is_some() && new != old {
            self.put(id, new);
        }
    }

    /// An import brings a job whose id is taken until then.
    pub(super) fn imported(&mut self, now: Now, id: &JobId, until: Timestamp) {
        let until = self.now(now, id).map_or(until, |old| old.until.max(until));
        if until > now.floor() {
            self.put(id, Some(TakenId { until, was_deleted: false }));
        }
    }

    /// The job with this id was deleted.
    pub(super) fn deleted(&mut self, now: Now, id: &JobId) {
        if let Some(taken) = self.now(now, id).filter(|taken| !taken.was_deleted) {
            self.put(id, Some(TakenId { was_deleted: true, ..taken }));
        }
    }

    /// Forgets some of those whose time is over.
    pub(super) fn forget(&mut self, now: Now) {
        for _ in 0..FORGOTTEN {
            let Some((_, id)) = self.first_end().filter(|(until, _)| until.after(SLACK) <= now.floor()) else {
                return;
            };
            let id = id.clone();
            self.put(&id, None);
        }
    }
}
