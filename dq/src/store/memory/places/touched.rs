//! Which rows a step has touched, and how: what a journal writes of the step ([`changes`](super::super::changes)).
//!
//! Only this folder can change a row, and each of its ways to do so notes what it changed, so no step can forget it. The bits
//! of a row are in its slot, so a row that a step touches twice is in the list once.

use std::mem;

use crate::job::{JobId, NodeId};

/// What a step has changed of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Touch(u8);

impl Touch {
    /// The place, or the time in it.
    pub(crate) const PLACE: Self = Self(1);
    /// The crash count.
    pub(crate) const CRASHES: Self = Self(1 << 1);
    /// The metadata of the record, and not its payload.
    pub(crate) const METADATA: Self = Self(1 << 2);
    /// The isolation or the pending command of the run.
    pub(crate) const NOTES: Self = Self(1 << 3);
    /// A node has claimed the job.
    pub(crate) const CLAIMED: Self = Self(1 << 4);
    /// Everything.
    pub(crate) const WHOLE: Self = Self(1 << 5);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// How much a journal wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Log {
    /// Nothing: nobody keeps a journal.
    #[default]
    Off,
    /// What has changed of each row.
    Parts,
    /// Each row that has changed, whole: a dump goes on.
    Whole,
}

/// The rows that the current step has touched; empty between steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched {
    pub(crate) log: Log,
    lists: Lists,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    /// Rows that were there when they were touched. One that has gone since is in `gone` too.
    pub(super) changed: Vec<JobId>,
    pub(super) gone: Vec<JobId>,
    /// Nodes that have released their leases, or have renewed released ones.
    pub(super) leases: Vec<NodeId>,
}

impl Touched {
    /// A step changes this of a row.
    #[inline]
    pub(super) fn change(&mut self, id: &JobId, touched: &mut Touch, what: Touch) {
        if self.log != Log::Off {
            self.note(id, touched, what);
        }
    }

    fn note(&mut self, id: &JobId, touched: &mut Touch, what: Touch) {
        if touched.is_empty() {
            self.lists.changed.push(id.clone());
        }
        touched.add(if self.log == Log::Whole { Touch::WHOLE } else { what });
    }

    /// A step removes a row. (No step removes a row that it has put itself.)
    #[inline]
    pub(super) fn remove(&mut self, id: &JobId) {
        if self.log != Log::Off {
            self.lists.gone.push(id.clone());
        }
    }

    /// A node has released its lease, or renewed a released one.
    pub(super) fn lease(&mut self, node: &NodeId) {
        if self.log != Log::Off {
            self.lists.leases.push(node.clone());
        }
    }

    pub(super) fn take(&mut self) -> Lists {
        mem::take(&mut self.lists)
    }

    /// Gives the lists of [`take`](Self::take) back, so that the next step needs no new memory.
    pub(super) fn reuse(&mut self, mut lists: Lists) {
        lists.changed.clear();
        lists.gone.clear();
        lists.leases.clear();
        self.lists = lists;
    }
}
