//! The state of one topic, and its steps.
//!
//! One step is one method call: plain, synchronous, without a clock, a lock or a task inside. It is told the time, reads
//! and checks first, then changes the state and cannot fail half-way; what others should hear of it collects in
//! [`Topic::take_notices`]. So whoever owns a `Topic` has atomic steps by calling them one after another, may write
//! each one down before or after, and may keep a copy of the whole to come back to.
//!
//! The steps stand in files of their own: `claims` (transfer, age), `settle`, `renew` (also reconcile, release),
//! `notes` (begin, exhaust), `reclaim`, `adds`, `command`, `publish`, `wake` and `audit` (scan). All ways out of RUNNING are
//! one method, in `leave`.

use super::broadcasts::Broadcasts;
use super::calls::Calls;
use super::notices::{Notice, Notices, To};
use super::now::Now;
use super::places::{Jobs, Shelf};
use super::roles::Roles;
use super::sequences::Sequences;
use crate::job::{Fence, JobId, State};
use crate::store::StoreError;
use crate::store::step::MOST_JOBS;
use crate::time::Timestamp;

/// One topic.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topic {
    pub(super) jobs: Jobs,
    pub(super) broadcasts: Broadcasts,
    pub(super) sequences: Sequences,
    pub(super) calls: Calls,
    pub(super) roles: Roles,
    pub(super) notices: Notices,
    /// The last one that was given out.
    pub(super) fence: Fence,
}

impl Topic {
    /// What the last step wants sent.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        debug_assert_eq!(self.jobs.len(), self.jobs.in_places(), "a job is in exactly one place");
        debug_assert!(self.jobs.len() > 32 || self.jobs.is_consistent(), "slots and places say the same");
        self.notices.take()
    }

    /// Whether it keeps any job.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.len() == 0 && self.broadcasts.len() == 0
    }

    /// Where a job is; a broadcast that waits counts as DELAYED, and goes before a DONE job of its id.
    pub(super) fn state(&self, id: &JobId) -> Option<State> {
        match self.jobs.state(id) {
            None | Some(State::Done) if self.broadcasts.contains(id) => Some(State::Delayed),
            state => state,
        }
    }

    /// Moves a known job to DELAYED.
    pub(super) fn delay(&mut self, now: Now, id: &JobId, due: Timestamp) {
        self.tell_earlier_head(now, due);
        self.jobs.shelve(id, Shelf::Delayed, due);
    }

    /// Signals the watcher, or everybody where there is none, when `due` is before the head (rule 23).
    pub(super) fn tell_earlier_head(&mut self, now: Now, due: Timestamp) {
        if self.jobs.shelf(Shelf::Delayed).head().is_none_or(|head| due < head) {
            let to = self.roles.watcher(now).map_or(To::Nodes, |node| To::Node(node.clone()));
            self.notices.due(to);
        }
    }
}

/// Checks a bound of a request before anything is done.
pub(super) const fn within(what: &'static str, size: usize) -> Result<(), StoreError> {
    if size > MOST_JOBS { Err(StoreError::OverLimit { what, size, limit: MOST_JOBS }) } else { Ok(()) }
}
