//! Whether what the node holds is known to be what the store counts as its rows.

use std::collections::BTreeSet;

use crate::job::JobId;

/// Whether the two sides are known to agree.
#[derive(Debug)]
pub(super) enum Reconciliation {
    /// They may differ.
    Needed,
    /// Asked; these held jobs were not met among the rows so far.
    InFlight {
        /// In order.
        unseen: BTreeSet<JobId>,
    },
    /// They agree.
    Settled,
}

impl Reconciliation {
    /// Where a node begins.
    pub(super) const fn needed() -> Self {
        Self::Needed
    }

    /// The two sides may differ. One that is under way already will tell.
    pub(super) fn need(&mut self) {
        *self = Self::Needed;
    }

    /// The answer will not come.
    pub(super) fn interrupted(&mut self) {
        if !self.is_settled() {
            *self = Self::Needed;
        }
    }

    pub(super) const fn is_settled(&self) -> bool {
        matches!(self, Self::Settled)
    }
}
