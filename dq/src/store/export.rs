//! Exports: pages of everything that a store keeps of the jobs of a topic, to be put into another store (rule 27).

use super::inspect::{Cursor, Stored};
use super::pending::{AddedJob, End, Ended, PendingCommand};
use crate::job::{Delivery, Fence, JobId, JobState, Record, State, Token};
use crate::time::Timestamp;

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

/// Everything that a store keeps of a job, or of a broadcast that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCopy {
    /// The id.
    pub id: JobId,
    /// The record, with the job's present metadata.
    pub record: Record,
    /// Crashes since the last settled outcome.
    pub crashes: u32,
    /// Its state, which is never RUNNING: an import refuses such a copy.
    pub state: State,
    /// Until when (DELAYED, DONE) or since when (UNACKED, DEAD) it is in this state.
    pub at: Timestamp,
    /// It is a waiting broadcast, which counts as DELAYED, and not a job.
    pub is_broadcast: bool,
    /// Until when its id counts as existing, whatever becomes of it (rule 18).
    pub taken_until: Option<Timestamp>,
}

impl JobCopy {
    /// What an export reads, in this order: jobs by their state, and broadcasts if the first is true. RUNNING comes before the
    /// broadcasts: the replacement of a running job may bring one.
    pub fn parts() -> impl Iterator<Item = (bool, State)> {
        let states = State::TIMED.into_iter().chain([State::Running]);
        states.map(|state| (false, state)).chain([(true, State::Delayed)])
    }

    /// A copy of a job without crashes, whose id is not taken any longer.
    pub const fn new(id: JobId, record: Record, state: State, at: Timestamp) -> Self {
        Self { id, record, crashes: 0, state, at, is_broadcast: false, taken_until: None }
    }

    /// The job, as a page shows it.
    pub(super) fn into_stored(self) -> Stored {
        let Self { id, record, state, at, .. } = self;
        Stored { id, record, place: JobState::of(state, at), crashes: 0, progress: None }
    }

    /// The copy without what nothing in its state has: a DELAYED job with a parking fence would become UNACKED later.
    pub(crate) fn into_sound(mut self) -> Self {
        if self.is_broadcast || matches!(self.state, State::Dead | State::Done) {
            self.crashes = 0;
        }
        if !matches!(self.state, State::Unacked | State::Done)
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
        let (state, at) = match (end, token) {
            (Some(End { how: Ended::Acked, .. }), _) if !fixed.retain.is_zero() => {
                (State::Done, clock.after(fixed.retain))
            }
            (Some(_), _) => return Vec::new(),
            (None, None) => (State::Dead, clock),
            (None, Some(token)) if fixed.parked_by.is_some() => (State::Unacked, token.due),
            (None, Some(token)) => (State::Delayed, token.due),
        };
        vec![JobCopy { crashes, ..JobCopy::new(id, record, state, at) }.into_sound()]
    }
}

impl AddedJob {
    fn into_copies(self, id: &JobId) -> Vec<JobCopy> {
        let copy = |is_broadcast| {
            let job = JobCopy::new(id.clone(), self.record.clone(), State::Delayed, self.due);
            JobCopy { is_broadcast, ..job }
        };
        match self.deliver {
            Delivery::Queue => vec![copy(false)],
            Delivery::Broadcast => vec![copy(true)],
            Delivery::Both => vec![copy(false), copy(true)],
        }
    }
}
