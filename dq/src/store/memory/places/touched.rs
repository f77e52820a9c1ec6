//! Which rows a step has touched, and how: what a journal writes of the step ([`changes`](super::super::changes)).
//!
//! Only this folder can change a row, and each of its ways to do so notes what it changed, so no step can forget it. The bits
//! of a row are in its slot, so a row that a step touches twice is in the list once.

use std::mem;

use crate::job::JobId;

/// What a step has changed of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::store::memory) struct Touch(u8);

impl Touch {
    /// The place, or the time in it.
    pub(in crate::store::memory) const PLACE: Self = Self(1);
    /// The crash count.
    pub(in crate::store::memory) const CRASHES: Self = Self(1 << 1);
    /// The metadata of the record, and not its payload.
    pub(in crate::store::memory) const METADATA: Self = Self(1 << 2);
    /// The isolation or the pending command of the run.
    pub(in crate::store::memory) const NOTES: Self = Self(1 << 3);
    /// A node has claimed the job.
    pub(in crate::store::memory) const CLAIMED: Self = Self(1 << 4);
    /// Everything.
    pub(in crate::store::memory) const WHOLE: Self = Self(1 << 5);

    pub(in crate::store::memory) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(in crate::store::memory) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// How much a journal wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::store::memory) enum Log {
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
pub(in crate::store::memory) struct Touched {
    pub(in crate::store::memory) log: Log,
    /// Rows that were there when they were touched. One that has gone since is in `gone` too.
    changed: Vec<JobId>,
    gone: Vec<JobId>,
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
            self.changed.push(id.clone());
        }
        touched.add(if self.log == Log::Whole { Touch::WHOLE } else { what });
    }

    /// A step removes a row. (No step removes a row that it has put itself.)
    #[inline]
    pub(super) fn remove(&mut self, id: &JobId) {
        if self.log != Log::Off {
            self.gone.push(id.clone());
        }
    }

    /// Takes the ids of rows that were changed, and of rows that were removed.
    pub(super) fn take(&mut self) -> (Vec<JobId>, Vec<JobId>) {
        (mem::take(&mut self.changed), mem::take(&mut self.gone))
    }

    /// Gives the lists of [`take`](Self::take) back, so that the next step needs no new memory.
    pub(super) fn reuse(&mut self, (mut changed, mut gone): (Vec<JobId>, Vec<JobId>)) {
        changed.clear();
        gone.clear();
        (self.changed, self.gone) = (changed, gone);
    }
}
