//! Looking at jobs without touching them.

use crate::job::{Fence, JobId, NodeId, Record, State};
use crate::time::Timestamp;

/// A job as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub id: JobId,
    /// What is kept of it.
    pub record: Record,
    /// Where it is.
    pub place: JobPlace,
}

/// Where a job is, and since or until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobPlace {
    /// DELAYED until this.
    Delayed {
        /// When it is due.
        due: Timestamp,
    },
    /// RUNNING.
    Running {
        /// The node that holds it and the fence of the run, where the look could tell: a look by id cannot.
        holder: Option<(NodeId, Fence)>,
    },
    /// UNACKED since this.
    Unacked {
        /// When it was parked.
        since: Timestamp,
    },
    /// DEAD since this.
    Dead {
        /// When it was given up.
        since: Timestamp,
    },
    /// DONE until this.
    Done {
        /// When it is forgotten.
        until: Timestamp,
    },
}

impl JobPlace {
    /// The state.
    pub const fn state(&self) -> State {
        match self {
            Self::Delayed { .. } => State::Delayed,
            Self::Running { .. } => State::Running,
            Self::Unacked { .. } => State::Unacked,
            Self::Dead { .. } => State::Dead,
            Self::Done { .. } => State::Done,
        }
    }
}

/// Where a page ended: the score (time) and id of its last job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The due time, or when it got there; zero for RUNNING.
    pub at: Timestamp,
    /// The id. For RUNNING the node comes first: `node/id`.
    pub id: String,
}

/// Asks for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Which place.
    pub state: State,
    /// Behind this; `None`: from the start.
    pub after: Option<Cursor>,
    /// The most jobs, 1 to 1,000.
    pub limit: usize,
}

/// A page of one place, in order of time, then id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<Stored>,
    /// Where the next page starts; `None`: this was the last.
    pub next: Option<Cursor>,
}

/// How many jobs are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicCounts {
    /// The store's clock.
    pub clock: Timestamp,
    /// Waiting, due or not.
    pub delayed: usize,
    /// Waiting and due.
    pub ready: usize,
    /// Held by nodes.
    pub running: usize,
    /// Parked.
    pub unacked: usize,
    /// Given up.
    pub dead: usize,
    /// Kept after their ack.
    pub done: usize,
    /// Broadcasts that wait.
    pub broadcasts: usize,
    /// The earliest due time.
    pub head: Option<Timestamp>,
}
