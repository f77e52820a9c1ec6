//! Exports: pages of everything that a store keeps of the jobs of a topic, to be put into another store (rule 27).

use super::inspect::{Cursor, JobPlace, Stored};
use super::pending::{AddedJob, End, Ended, PendingCommand};
use crate::job::{Delivery, Fence, JobId, Record, State, Token};
use crate::time::Timestamp;

/// What a page of an export is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExportPart {
    /// The jobs in this state. RUNNING jobs come as they would be if their nodes gave them back now.
    State(State),
    /// The broadcasts that wait.
    Broadcasts,
}

impl ExportPart {
    /// Every part. RUNNING comes before the broadcasts: the replacement of a running job may bring one.
    pub const ALL: [Self; 6] = [
        Self::State(State::Delayed),
        Self::State(State::Unacked),
        Self::State(State::Dead),
        Self::State(State::Done),
        Self::State(State::Running),
        Self::Broadcasts,
    ];

    /// The place that is read; `None` for RUNNING.
    pub fn place(self) -> Option<CopyPlace> {
        match self {
            Self::Broadcasts => Some(CopyPlace::Broadcast),
            Self::State(state) => CopyPlace::ALL.into_iter().find(|place| place.state() == state),
        }
    }
}

/// A request for a page of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRequest {
    /// What the page is about.
    pub part: ExportPart,
    /// Where the page starts; `None` means at the beginning.
    pub after: Option<Cursor>,
    /// The most jobs that the page is made of, 1 to 1,000.
    pub limit: usize,
    /// The most bytes of records in the page. A page has one job at least, whatever its size.
    pub bytes: usize,
}

/// A page of an export. It changes nothing, and several pages show no one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The copies, in order of time, then id; those of RUNNING jobs in no order. A running job may leave none, or two.
    pub copies: Vec<JobCopy>,
    /// How many jobs, or broadcasts, the page is made of.
    pub jobs: usize,
    /// Where the next page starts; `None` means that this was the last. A page may be empty and not the last.
    pub next: Option<Cursor>,
    /// The newest fence that the topic has given out.
    pub fence: Fence,
}

/// Where a copy belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyPlace {
    /// DELAYED, until its time.
    Delayed,
    /// UNACKED, since its time.
    Unacked,
    /// DEAD, since its time.
    Dead,
    /// DONE, until its time.
    Done,
    /// Among the broadcasts that wait, until its time.
    Broadcast,
}

impl CopyPlace {
    /// Every place.
    pub const ALL: [Self; 5] = [Self::Delayed, Self::Unacked, Self::Dead, Self::Done, Self::Broadcast];

    /// Its letter in scripts and in moves.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Delayed => "d",
            Self::Unacked => "u",
            Self::Dead => "x",
            Self::Done => "f",
            Self::Broadcast => "b",
        }
    }

    /// The state of what is there. A broadcast that waits counts as DELAYED.
    pub const fn state(self) -> State {
        match self {
            Self::Delayed | Self::Broadcast => State::Delayed,
            Self::Unacked => State::Unacked,
            Self::Dead => State::Dead,
            Self::Done => State::Done,
        }
    }

    /// Whether a job of this place keeps the fence of the run that parked it.
    const fn has_parking_fence(self) -> bool {
        matches!(self, Self::Unacked | Self::Done)
    }

    /// Whether a job of this place keeps its crashes: it has not ended since they were counted.
    const fn has_crashes(self) -> bool {
        matches!(self, Self::Delayed | Self::Unacked)
    }
}

/// Everything that a store keeps of a job, or of a broadcast that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCopy {
    /// The id.
    pub id: JobId,
    /// The record, with the job's present metadata.
    pub record: Record,
    /// Crashes since the last settled outcome.
    pub crashes: u32,
    /// Where it belongs.
    pub place: CopyPlace,
    /// Until when, or since when, it is there.
    pub at: Timestamp,
    /// Until when its id counts as existing, whatever becomes of it (rule 18).
    pub taken_until: Option<Timestamp>,
}

impl JobCopy {
    /// The job, as a page shows it.
    pub(super) fn into_stored(self) -> Stored {
        let Self { id, record, place, at, .. } = self;
        Stored { id, record, place: JobPlace::of(place.state(), at), crashes: 0, progress: None }
    }

    /// The copy without what no job of its place has: a DELAYED job with a parking fence would become UNACKED later.
    pub(crate) fn into_sound(mut self) -> Self {
        if !self.place.has_crashes() {
            self.crashes = 0;
        }
        if !self.place.has_parking_fence()
            && self.record.fixed().parked_by.is_some()
            && let Ok(mut metadata) = self.record.metadata()
        {
            metadata.parked_by = None;
            self.record = self.record.with_metadata(&metadata);
        }
        self
    }
}

/// A RUNNING job, as a store keeps it.
#[derive(Debug)]
pub(crate) struct HeldJob {
    pub(crate) id: JobId,
    pub(crate) record: Record,
    pub(crate) crashes: u32,
    /// `None`: another program wrote the row.
    pub(crate) token: Option<Token>,
    pub(crate) pending: PendingCommand,
}

impl HeldJob {
    /// What would be left if the node gave the job back now, without a crash: in this order a replacement, an end from outside,
    /// the job itself.
    pub(crate) fn given_back(self, clock: Timestamp) -> Vec<JobCopy> {
        let Self { id, record, crashes, token, pending: PendingCommand { end, replacement } } = self;
        let fixed = record.fixed();
        let end = end.filter(|end| end.applies(token.map(|token| token.fence), fixed.parked_by));
        if let Some(new) = replacement.filter(|new| end.is_some() || !new.conditional) {
            return new.job.into_copies(&id);
        }
        let (place, at) = match (end, token) {
            (Some(End { how: Ended::Acked, .. }), _) if !fixed.retain.is_zero() => {
                (CopyPlace::Done, clock.after(fixed.retain))
            }
            (Some(_), _) => return Vec::new(),
            (None, None) => (CopyPlace::Dead, clock),
            (None, Some(token)) if fixed.parked_by.is_some() => (CopyPlace::Unacked, token.due),
            (None, Some(token)) => (CopyPlace::Delayed, token.due),
        };
        vec![JobCopy { id, record, crashes, place, at, taken_until: None }.into_sound()]
    }
}

impl AddedJob {
    fn into_copies(self, id: &JobId) -> Vec<JobCopy> {
        let places: &[CopyPlace] = match self.deliver {
            Delivery::Queue => &[CopyPlace::Delayed],
            Delivery::Broadcast => &[CopyPlace::Broadcast],
            Delivery::Both => &[CopyPlace::Delayed, CopyPlace::Broadcast],
        };
        let copy = |place: &CopyPlace| JobCopy {
            id: id.clone(),
            record: self.record.clone(),
            crashes: 0,
            place: *place,
            at: self.due,
            taken_until: None,
        };
        places.iter().map(copy).collect()
    }
}
