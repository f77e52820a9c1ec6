//! Queries: they read jobs and change nothing.

use crate::job::{Fence, JobId, NodeId, Progress, Record, State, TopicName};
use crate::time::Timestamp;

/// How many names of topics one query looks at, at most.
pub const MAX_NAMES: usize = 500;

/// A page of the names of topics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicNames {
    /// Topics that hold any job or broadcast, in the order of their names.
    pub names: Vec<TopicName>,
    /// How far the query looked, where names may follow; `None` at the end. A page without a name may have one.
    pub next: Option<String>,
}

/// A job, as a query found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its id.
    pub id: JobId,
    /// Its record.
    pub record: Record,
    /// Its state, and since or until when.
    pub place: JobPlace,
    /// The crashes that are charged to it. A page leaves it 0.
    pub crashes: u32,
    /// How far its run has come, if the handler says so. A page leaves it out.
    pub progress: Option<Progress>,
}

/// The state of a job, and since or until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobPlace {
    /// The job is DELAYED.
    Delayed {
        /// When the job is due.
        due: Timestamp,
    },
    /// The job is RUNNING.
    Running {
        /// The node that holds the job and the fence of its run. A query by id leaves it `None`.
        holder: Option<(NodeId, Fence)>,
    },
    /// The job is UNACKED.
    Unacked {
        /// When its handler parked it.
        since: Timestamp,
    },
    /// The job is DEAD.
    Dead {
        /// When it became DEAD.
        since: Timestamp,
    },
    /// The job is DONE.
    Done {
        /// When the store removes it.
        until: Timestamp,
    },
}

impl JobPlace {
    /// The place of a job in this state, since or until this time. Who holds a running job is not known.
    pub(crate) const fn of(state: State, at: Timestamp) -> Self {
        match state {
            State::Delayed => Self::Delayed { due: at },
            State::Running => Self::Running { holder: None },
            State::Unacked => Self::Unacked { since: at },
            State::Dead => Self::Dead { since: at },
            State::Done => Self::Done { until: at },
        }
    }

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

    /// When the job is due, or since or until when it is there; `None` while it is RUNNING.
    pub const fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Delayed { due: at }
            | Self::Unacked { since: at }
            | Self::Dead { since: at }
            | Self::Done { until: at } => Some(*at),
            Self::Running { .. } => None,
        }
    }

    /// The node that holds the job, if it is RUNNING and the query found that node.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Running { holder } => holder.as_ref().map(|(node, _)| node),
            _ => None,
        }
    }
}

/// The position in a list: the time and the id of the last job that was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The due time of the job, or when it entered its state; zero for RUNNING.
    pub at: Timestamp,
    /// The id. For RUNNING, the node comes first: `node/id`.
    pub id: String,
}

/// A request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The state of the jobs.
    pub state: State,
    /// Where the page starts; `None` means at the beginning.
    pub after: Option<Cursor>,
    /// The most jobs in the page, 1 to 1,000.
    pub limit: usize,
    /// The most bytes of records in the page. A page has one job at least, whatever its size.
    pub bytes: usize,
}

/// A page of jobs in one state, in the order of their time, then of their id. A page without a job may not be the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<Stored>,
    /// Where the next page starts; `None` means that this was the last.
    pub next: Option<Cursor>,
}

/// How many jobs of a topic are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicCounts {
    /// The time of the store's clock.
    pub clock: Timestamp,
    /// DELAYED jobs, due or not.
    pub delayed: usize,
    /// DELAYED jobs that are due.
    pub ready: usize,
    /// RUNNING jobs.
    pub running: usize,
    /// UNACKED jobs.
    pub unacked: usize,
    /// DEAD jobs.
    pub dead: usize,
    /// DONE jobs.
    pub done: usize,
    /// Broadcasts that are not published yet.
    pub broadcasts: usize,
    /// The earliest due time of a DELAYED job.
    pub head: Option<Timestamp>,
}

impl TopicCounts {
    /// Adds the jobs of another part of the topic.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { clock, delayed, ready, running, unacked, dead, done, broadcasts, head } = *other;
        self.clock = clock;
        self.head = self.head.into_iter().chain(head).min();
        let sums = [
            (&mut self.delayed, delayed),
            (&mut self.ready, ready),
            (&mut self.running, running),
            (&mut self.unacked, unacked),
            (&mut self.dead, dead),
            (&mut self.done, done),
            (&mut self.broadcasts, broadcasts),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
    }
}
