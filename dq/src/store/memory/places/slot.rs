//! What the store keeps of one job, and the only way in which a step can change it.

use std::collections::BTreeSet;
use std::ops::Deref;

use super::super::pending::PendingCommand;
use super::touched::{Touch, Touched};
use crate::job::{Isolation, JobId, Metadata, NodeId, Record, State, Token};
use crate::time::Timestamp;

/// A place that a job leaves by time; RUNNING is the only other place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::memory) enum TimedPlace {
    /// DELAYED until the due time.
    Delayed,
    /// UNACKED since the job was parked.
    Unacked,
    /// DEAD since the job was given up.
    Dead,
    /// DONE until the retention ends.
    Done,
}

/// A run of a job, with its row.
#[derive(Debug, Clone)]
pub(in crate::store::memory) struct Run {
    pub(in crate::store::memory) node: NodeId,
    pub(in crate::store::memory) token: Token,
    /// How the quarantined job was started (rule 19).
    pub(in crate::store::memory) isolation: Option<Isolation>,
    /// Boxed because few runs have one.
    pub(in crate::store::memory) pending: Option<Box<PendingCommand>>,
}

/// The place of a job.
#[derive(Debug, Clone)]
pub(in crate::store::memory) enum Place {
    Timed(TimedPlace, Timestamp),
    Running(Box<Run>),
}

impl Place {
    pub(in crate::store::memory) const fn state(&self) -> State {
        match self {
            Self::Timed(TimedPlace::Delayed, _) => State::Delayed,
            Self::Timed(TimedPlace::Unacked, _) => State::Unacked,
            Self::Timed(TimedPlace::Dead, _) => State::Dead,
            Self::Timed(TimedPlace::Done, _) => State::Done,
            Self::Running(_) => State::Running,
        }
    }
}

/// What the store keeps of one job. Nothing outside this folder gets a mutable one: steps change it through [`SlotMut`].
#[derive(Debug, Clone)]
pub(in crate::store::memory) struct Slot {
    pub(in crate::store::memory) record: Record,
    /// Crashes since the last settled outcome.
    pub(in crate::store::memory) crashes: u32,
    pub(in crate::store::memory) place: Place,
    /// What the current step has changed; nothing between steps.
    pub(super) touched: Touch,
}

impl Slot {
    pub(in crate::store::memory) fn new(record: Record, crashes: u32, place: Place) -> Self {
        Self { record, crashes, place, touched: Touch::default() }
    }

    /// The run of the job, if it is RUNNING.
    pub(in crate::store::memory) const fn run(&self) -> Option<&Run> {
        match &self.place {
            Place::Running(run) => Some(run),
            Place::Timed(..) => None,
        }
    }
}

/// The jobs of the topic that one node holds.
#[derive(Debug, Clone)]
pub(in crate::store::memory) struct Holder {
    /// The end of the lease; [`Timestamp::EPOCH`]: the node has released it, and the rows may be reclaimed at once.
    pub(in crate::store::memory) lease: Timestamp,
    pub(in crate::store::memory) rows: BTreeSet<JobId>,
}

impl Holder {
    /// Whether the node has released its lease.
    pub(in crate::store::memory) fn is_released(&self) -> bool {
        self.lease == Timestamp::EPOCH
    }
}

/// A slot that a step changes. Each change notes itself for the journal.
#[derive(Debug)]
pub(in crate::store::memory) struct SlotMut<'a> {
    pub(super) id: &'a JobId,
    pub(super) slot: &'a mut Slot,
    pub(super) touched: &'a mut Touched,
}

impl Deref for SlotMut<'_> {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.slot
    }
}

impl SlotMut<'_> {
    fn change(&mut self, what: Touch) {
        self.touched.change(self.id, &mut self.slot.touched, what);
    }

    pub(in crate::store::memory) fn set_crashes(&mut self, crashes: u32) {
        if self.slot.crashes != crashes {
            self.slot.crashes = crashes;
            self.change(Touch::CRASHES);
        }
    }

    /// Sets the crash count to zero, and returns what it was.
    pub(in crate::store::memory) fn take_crashes(&mut self) -> u32 {
        let crashes = self.slot.crashes;
        self.set_crashes(0);
        crashes
    }

    /// Gives the payload other metadata.
    pub(in crate::store::memory) fn set_metadata(&mut self, metadata: &Metadata) {
        // Bytes that are not a record become the payload of a new one.
        let is_record = self.slot.record.metadata_bytes().is_some();
        self.slot.record = self.slot.record.with_metadata(metadata);
        self.change(if is_record { Touch::METADATA } else { Touch::WHOLE });
    }

    /// Gives the job another record: one with other metadata, and perhaps with another payload.
    pub(in crate::store::memory) fn set_record(&mut self, record: Record, has_other_payload: bool) {
        let is_whole = has_other_payload || self.slot.record.metadata_bytes().is_none();
        self.slot.record = record;
        self.change(if is_whole { Touch::WHOLE } else { Touch::METADATA });
    }

    /// Notes how the run was started; does nothing to a job that is not RUNNING.
    pub(in crate::store::memory) fn set_isolation(&mut self, isolation: Isolation) {
        if let Place::Running(run) = &mut self.slot.place {
            run.isolation = Some(isolation);
            self.change(Touch::NOTES);
        }
    }

    /// The pending command of a run, to change it; `None` if the job is not RUNNING.
    pub(in crate::store::memory) fn pending_mut(&mut self) -> Option<&mut PendingCommand> {
        self.change(Touch::NOTES);
        match &mut self.slot.place {
            Place::Running(run) => Some(run.pending.get_or_insert_default()),
            Place::Timed(..) => None,
        }
    }

    /// Removes the pending command of a run.
    pub(in crate::store::memory) fn take_pending(&mut self) -> Option<PendingCommand> {
        let Place::Running(run) = &mut self.slot.place else { return None };
        let pending = run.pending.take()?;
        self.change(Touch::NOTES);
        Some(*pending)
    }
}
