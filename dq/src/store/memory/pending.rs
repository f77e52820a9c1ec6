//! What waits for the end of a run: an *end*, a *replacement*, or both (PROTOCOL.md rules 12, 13 and 17).
//!
//! A script that finds an id RUNNING cannot know whose row it is, so it changes nothing but the mark; every step that
//! takes the job out of RUNNING obeys it. Here a mark is part of the run and cannot be left behind.

use crate::job::{Deliver, Fence, Record};
use crate::time::Timestamp;

/// How a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Acked,
    Deleted,
    Cancelled,
}

/// The end of a run that was asked for from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) how: Ended,
    /// Only of the run (or of the parked run) with this fence; for acks alone.
    pub(super) fence: Option<Fence>,
}

impl End {
    /// Whether it is for a run under `fence` of a job that `parked_by` parked before.
    pub(super) fn applies(self, fence: Fence, parked_by: Option<Fence>) -> bool {
        self.fence.is_none_or(|named| named == fence || parked_by == Some(named))
    }
}

/// A job that is put where it belongs when nothing of the old one is in the way.
#[derive(Debug, Clone)]
pub(super) struct Fresh {
    pub(super) record: Record,
    /// Fixed at the add.
    pub(super) due: Timestamp,
    pub(super) deliver: Deliver,
}

/// A job that takes the place of a running one.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    pub(super) fresh: Fresh,
    /// Only if the end beside it applies.
    pub(super) conditional: bool,
}

/// What waits for the end of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingCommand {
    pub(super) end: Option<End>,
    pub(super) replacement: Option<Replacement>,
}

impl PendingCommand {
    /// Whether the run is over, whoever holds it: no handler may start, and the id counts as absent.
    pub(super) fn is_unfenced_end(&self) -> bool {
        self.end.is_some_and(|end| end.fence.is_none())
    }
}
