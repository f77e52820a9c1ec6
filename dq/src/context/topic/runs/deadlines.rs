//! Deadlines: which run of a topic is checked next, and when.
//!
//! Most runs end long before anything is due, and cost nothing here: a run is first checked a fixed time after it was handed
//! over, so these checks come in the order of the runs. What a check finds may be due later: at a time of its own, because a
//! timeout counts from when the run began.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::context::topic::run::RunId;

/// The checks that are due at times of their own, and how far the first checks have come.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    checked: RunId,
    again: BTreeSet<(Duration, RunId)>,
}

impl Deadlines {
    /// The last run that was checked. The first checks of all later ones are to come.
    pub(super) const fn checked(&self) -> RunId {
        self.checked
    }

    /// The next check, if the next first check is `first`.
    pub(super) fn next(&self, first: Option<(Duration, RunId)>) -> Option<(RunId, Duration)> {
        let next = [first, self.again.first().copied()].into_iter().flatten().min()?;
        Some((next.1, next.0))
    }

    /// This run is checked now.
    pub(super) fn check(&mut self, run_id: RunId) {
        self.checked = self.checked.max(run_id);
    }

    /// Moves the next check of a run from `before` to `at`.
    pub(super) fn set(&mut self, run_id: RunId, before: Option<Duration>, at: Option<Duration>) {
        if let Some(before) = before {
            self.again.remove(&(before, run_id));
        }
        self.again.extend(at.map(|at| (at, run_id)));
    }
}
