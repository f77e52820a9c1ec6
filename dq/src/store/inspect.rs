//! Queries: they read jobs and change nothing.

use crate::job::{JobId, JobState, Progress, Record, State, TopicName};
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
    pub place: JobState,
    /// The crashes that are charged to it. A page leaves it 0.
    pub crashes: u32,
    /// How far its run has come, if the handler says so. A page leaves it out.
    pub progress: Option<Progress>,
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
