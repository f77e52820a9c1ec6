//! What the store keeps of one job, and the only way in which a step can change it.
//!
//! A *pending command* is an end, a replacement, or both, which take effect when a run ends (rule 13). An add or command
//! that finds a job RUNNING changes only its pending command, and the step that takes the job out of RUNNING obeys it. The pending
//! command is part of the run, so it cannot outlive the run.

use std::ops::Deref;

use super::groups::Member;
use super::index::IndexPart;
use super::rows::{Position, Rows};
use super::touched::{Touch, Touched};
use crate::job::{Isolation, JobId, Metadata, NodeId, Priority, Progress, Record, State, Token};
use crate::store::{PendingCommand, Replacement};
use crate::time::Timestamp;

/// A run of a job, with its row.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) node: NodeId,
    pub(crate) token: Token,
    /// Where its row is.
    pub(crate) position: Position,
    /// How the quarantined job was started (rule 19).
    pub(crate) isolation: Option<Isolation>,
    /// Boxed because few runs have one.
    pub(crate) pending: Option<Box<PendingCommand>>,
    /// Boxed because few runs have any. They end with the process of a `file:` store, as the run does, so no journal has them.
    pub(crate) notes: Option<Box<RunNotes>>,
}

/// What a run has noted while it goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunNotes {
    /// The highest number.
    pub(crate) number: u64,
    /// How far it has come, as its handler says.
    pub(crate) progress: Option<Progress>,
}

impl Run {
    /// A run whose row gets its position once the job is in this place.
    pub(crate) const fn new(node: NodeId, token: Token) -> Self {
        Self { node, token, position: Position(0), isolation: None, pending: None, notes: None }
    }
}

/// The place of a job.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In this state, which is not RUNNING, since or until then.
    Timed(State, Timestamp),
    Running(Box<Run>),
}

impl Place {
    /// The bytes of the replacement that waits for the end of the run.
    pub(super) fn replacement_size(&self) -> usize {
        match self {
            Self::Running(run) => size_of_replacement(run.pending.as_deref()),
            Self::Timed(..) => 0,
        }
    }

    pub(crate) const fn state(&self) -> State {
        match self {
            Self::Timed(state, _) => *state,
            Self::Running(_) => State::Running,
        }
    }
}

fn size_of_replacement(pending: Option<&PendingCommand>) -> usize {
    pending.and_then(|pending| pending.replacement.as_ref()).map_or(0, |new| new.job.record.as_bytes().len())
}

/// What a job takes in memory beside the bytes of its record and of a long id: its slot, its place in the indexes, and the room that
/// the tables keep free.
const JOB: usize = 320;

/// An id of up to this many bytes needs no memory of its own.
const SHORT_ID: usize = 23;

/// What a row with this id and so many bytes of records takes in memory.
pub(crate) fn bytes_of_row(id: &JobId, records: usize) -> u64 {
    let id = id.as_str().len();
    (JOB + records + if id > SHORT_ID { id } else { 0 }) as u64
}

/// What the store keeps of one job. Nothing outside this folder gets a mutable one: steps change it through [`SlotMut`].
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) record: Record,
    /// Crashes since the last settled outcome.
    pub(crate) crashes: u32,
    pub(crate) place: Place,
    /// The priority by which the job is in the index of its place.
    pub(super) priority: Priority,
    /// The group in which it is.
    pub(super) member: Option<Box<Member>>,
    /// Whether another job of its group goes before it.
    pub(super) is_blocked: bool,
    /// Whether it has a seat in its group.
    pub(crate) has_seat: bool,
    /// What the current step has changed; nothing between steps.
    pub(super) touched: Touch,
}

impl Slot {
    pub(crate) fn new(record: Record, crashes: u32, place: Place) -> Self {
        let priority = Self::priority_in(&place, &record);
        let touched = Touch::default();
        Self { record, crashes, place, priority, member: None, is_blocked: false, has_seat: false, touched }
    }

    /// Whether a run of it has a seat in its group, if it has one: unless `sweep` claims it.
    pub(crate) fn takes_seat(&self) -> bool {
        self.record.fixed().parked_by.is_none()
    }

    /// The part of the index of its place in which the job is.
    pub(super) const fn part(&self) -> IndexPart {
        IndexPart::of(self.priority, self.is_blocked)
    }

    /// The part of the index in which a job with this record is: all other places than DELAYED have one part.
    pub(super) fn priority_in(place: &Place, record: &Record) -> Priority {
        match place {
            Place::Timed(State::Delayed, _) => record.priority(),
            _ => Priority::Normal,
        }
    }

    /// The run of the job, if it is RUNNING.
    pub(crate) const fn run(&self) -> Option<&Run> {
        match &self.place {
            Place::Running(run) => Some(run),
            Place::Timed(..) => None,
        }
    }

    /// The command that waits for the end of the run.
    pub(crate) fn pending(&self) -> Option<&PendingCommand> {
        self.run()?.pending.as_deref()
    }

    /// The replacement that waits for the end of the run.
    pub(crate) fn replacement(&self) -> Option<&Replacement> {
        self.pending()?.replacement.as_ref()
    }

    /// The size of the record of that replacement.
    pub(crate) fn replacement_size(&self) -> usize {
        self.place.replacement_size()
    }

    /// The bytes of its records.
    pub(super) fn records(&self) -> usize {
        self.record.as_bytes().len() + self.replacement_size()
    }
}

/// The jobs of the topic that one node holds.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    /// The end of the lease; [`Timestamp::EPOCH`]: the node has released it, and the rows may be reclaimed at once.
    pub(crate) lease: Timestamp,
    pub(crate) rows: Rows,
}

impl Holder {
    /// Whether the node has released its lease.
    pub(crate) fn is_released(&self) -> bool {
        self.lease == Timestamp::EPOCH
    }
}

/// A slot that a step changes. Each change notes itself for the journal.
#[derive(Debug)]
pub(crate) struct SlotMut<'a> {
    pub(super) id: &'a JobId,
    pub(super) slot: &'a mut Slot,
    pub(super) touched: &'a mut Touched,
    /// What all jobs of the topic take in memory.
    pub(super) bytes: &'a mut u64,
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

    /// Changes the records of the job.
    fn change_records<T>(&mut self, change: impl FnOnce(&mut Slot) -> T) -> T {
        let before = self.slot.records() as u64;
        let changed = change(self.slot);
        *self.bytes = *self.bytes + self.slot.records() as u64 - before;
        changed
    }

    pub(crate) fn set_crashes(&mut self, crashes: u32) {
        if self.slot.crashes != crashes {
            self.slot.crashes = crashes;
            self.change(Touch::CRASHES);
        }
    }

    /// Sets the crash count to zero, and returns what it was.
    pub(crate) fn take_crashes(&mut self) -> u32 {
        let crashes = self.slot.crashes;
        self.set_crashes(0);
        crashes
    }

    /// Gives the payload other metadata.
    pub(crate) fn set_metadata(&mut self, metadata: &Metadata) {
        // Bytes that are not a record become the payload of a new one.
        let is_record = self.slot.record.metadata_bytes().is_some();
        self.change_records(|slot| slot.record = slot.record.with_metadata(metadata));
        self.change(if is_record { Touch::METADATA } else { Touch::WHOLE });
    }

    /// Gives the job another record: one with other metadata, and perhaps with another payload.
    pub(crate) fn set_record(&mut self, record: Record, has_other_payload: bool) {
        let is_whole = has_other_payload || self.slot.record.metadata_bytes().is_none();
        self.change_records(|slot| slot.record = record);
        self.change(if is_whole { Touch::WHOLE } else { Touch::METADATA });
    }

    /// Sets the isolation and the pending command of a run. Returns false if the job is not RUNNING.
    pub(crate) fn set_notes(&mut self, isolation: Option<Isolation>, pending: Option<Box<PendingCommand>>) -> bool {
        let is_running = self.change_records(|slot| match &mut slot.place {
            Place::Running(run) => {
                (run.isolation, run.pending) = (isolation, pending);
                true
            }
            Place::Timed(..) => false,
        });
        if is_running {
            self.change(Touch::NOTES);
        }
        is_running
    }

    /// Notes how the run was started; does nothing to a job that is not RUNNING.
    pub(crate) fn set_isolation(&mut self, isolation: Isolation) {
        if let Place::Running(run) = &mut self.slot.place {
            run.isolation = Some(isolation);
            self.change(Touch::NOTES);
        }
    }

    /// The notes of the run; `None` if the job is not RUNNING.
    pub(crate) fn notes(&mut self) -> Option<&mut RunNotes> {
        match &mut self.slot.place {
            Place::Running(run) => Some(run.notes.get_or_insert_default()),
            Place::Timed(..) => None,
        }
    }

    /// Changes the pending command of a run; `None` if the job is not RUNNING.
    pub(crate) fn change_pending<T>(&mut self, change: impl FnOnce(&mut PendingCommand) -> T) -> Option<T> {
        self.change(Touch::NOTES);
        self.change_records(|slot| match &mut slot.place {
            Place::Running(run) => Some(change(run.pending.get_or_insert_default())),
            Place::Timed(..) => None,
        })
    }

    /// Removes the pending command of a run.
    pub(crate) fn take_pending(&mut self) -> Option<PendingCommand> {
        let pending = self.change_records(|slot| match &mut slot.place {
            Place::Running(run) => run.pending.take(),
            Place::Timed(..) => None,
        })?;
        self.change(Touch::NOTES);
        Some(*pending)
    }
}
