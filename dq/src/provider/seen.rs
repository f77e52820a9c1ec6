//! Jobs and schedules as a query found them.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::root::Caller;
use crate::job::{Codec, InvalidRecord, JobId, JobState, Metadata, Record, State};
use crate::schedule::{Definition, OnMissed, Origin, Overlap, SchedulePause, Times};
use crate::store::Stored;
use crate::time::Timestamp;

/// A job as a query found it; it may have moved since. `P` is the type of its payload, which [`payload`](Self::payload)
/// decodes.
pub struct JobInfo<P> {
    /// The job's id.
    pub id: JobId,
    /// Where the job is, and since or until when.
    pub place: JobState,
    /// The job's metadata: attempts, cause, last error, headers and so on. An error if the stored bytes are not a record of
    /// this version. `cause` and `error` say why a job is DEAD.
    pub details: Result<Metadata, InvalidRecord>,
    record: Record,
    payload: PhantomData<fn() -> P>,
}

/// Why a payload cannot be read. No text of it quotes the payload.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum UnreadablePayload {
    /// The record is damaged, or of another version.
    #[error(transparent)]
    Record(#[from] InvalidRecord),
    /// The payload does not decode as the requested type. The text of this error quotes the payload, so it is no source: match
    /// on it, and show it only where the payload may be shown.
    #[error(
        "the payload does not decode, at line {} column {}; the error in `UnreadablePayload::Json` has the reason, and quotes the payload",
        .0.line(), .0.column()
    )]
    Json(serde_json::Error),
}

impl fmt::Debug for UnreadablePayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnreadablePayload({self})")
    }
}

impl<P> JobInfo<P> {
    pub(super) fn new(stored: Stored) -> Self {
        let details = stored.record.metadata();
        Self { id: stored.id, place: stored.place, details, record: stored.record, payload: PhantomData }
    }

    /// The job's state.
    pub const fn state(&self) -> State {
        self.place.state()
    }

    /// The bytes of the payload and their encoding.
    ///
    /// # Errors
    /// [`InvalidRecord`] if the stored bytes are not a record of this version.
    pub fn raw_payload(&self) -> Result<(Codec, &[u8]), InvalidRecord> {
        self.record.payload()
    }
}

impl<P: DeserializeOwned> JobInfo<P> {
    /// Decodes the payload.
    ///
    /// # Errors
    /// [`UnreadablePayload`] if the record cannot be read, or the payload is not a `P`.
    pub fn payload(&self) -> Result<P, UnreadablePayload> {
        match self.record.payload()? {
            (Codec::Json, bytes) => serde_json::from_slice(bytes).map_err(UnreadablePayload::Json),
        }
    }
}

/// Shows the id and the place, never the payload.
impl<P> fmt::Debug for JobInfo<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobInfo").field("id", &self.id).field("place", &self.place).finish_non_exhaustive()
    }
}

/// A schedule as a query found it; it may have ticked since.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleInfo {
    /// Its name.
    pub name: String,
    /// Its ticks and policies; the reason if this version of dq cannot read them.
    pub details: Result<ScheduleDetails, String>,
}

/// What a schedule says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleDetails {
    /// When the ticks are.
    pub times: Times,
    /// No tick is before it.
    pub start: Option<Timestamp>,
    /// No tick is after it.
    pub end: Option<Timestamp>,
    /// What becomes of missed ticks.
    pub on_missed: OnMissed,
    /// What becomes of a tick whose predecessor is not done.
    pub overlap: Overlap,
    /// Each job is due up to this long after its tick.
    pub jitter: Duration,
    /// The next tick; one that has passed is missed, or a node adds its job just now.
    pub next: Timestamp,
    /// The id of the job of the last tick; `None` if there was no tick yet. The job may have ended.
    pub last_job: Option<JobId>,
    /// Where the schedule comes from.
    pub origin: ScheduleOrigin,
    /// Whether it is paused, and why.
    pub pause: Option<SchedulePause>,
}

/// Where a schedule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduleOrigin {
    /// A call of [`add_schedule`](super::Provider::add_schedule).
    Call,
    /// The code of this program defines it, or a newer or older version of this program.
    ThisProgram,
    /// The code of another program, or of another version of this one: the code of this program defines no schedule of this name. It
    /// goes on until somebody removes it.
    OtherProgram,
}

impl ScheduleInfo {
    pub(super) fn new(caller: &Caller, name: String, stored: &Stored) -> Self {
        match Definition::read(&stored.record) {
            Ok(definition) => Self::of(caller, name, definition),
            Err(error) => Self { name, details: Err(error.to_string()) },
        }
    }

    pub(super) fn of(caller: &Caller, name: String, schedule: Definition) -> Self {
        let origin = match schedule.origin {
            Origin::Call => ScheduleOrigin::Call,
            Origin::Code { .. } if caller.root.defines(caller.topic(), &name) => ScheduleOrigin::ThisProgram,
            Origin::Code { .. } => ScheduleOrigin::OtherProgram,
        };
        let details = ScheduleDetails {
            times: schedule.ticks.times,
            start: schedule.ticks.start,
            end: schedule.ticks.end,
            on_missed: schedule.on_missed,
            overlap: schedule.overlap,
            jitter: schedule.jitter,
            next: schedule.tick,
            last_job: schedule.last,
            origin,
            pause: schedule.pause,
        };
        Self { name, details: Ok(details) }
    }
}
