//! Requests and answers of the steps a node takes (section 3 of the protocol).
//!
//! Durations and limits travel with the requests: a store has no settings of its own for them.

use std::time::Duration;

use crate::job::{JobId, Metadata, NodeId, Record, Sequence, Token};
use crate::time::Timestamp;

/// The most jobs one step may touch.
pub const MOST_JOBS: usize = 1_000;

/// The longest lease there is; a lease further ahead is cut to it.
pub const LONGEST_LEASE: Duration = Duration::from_secs(300);

/// How long after a told time the role that was told it stays taken.
pub const ROLE_SLACK: Duration = Duration::from_millis(200);

/// How long after the head the deputy is told to come.
pub const STANDBY_DELAY: Duration = Duration::from_millis(250);

/// What every answer to a link says of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseStatus {
    /// The last turn of this node that was executed; zero when none is known.
    pub sequence: Sequence,
    /// How many jobs the store thinks this node holds.
    pub rows: usize,
}

/// The answer of a step that needs the right turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sequenced<T> {
    /// The turn was right, the step is done.
    Done(T),
    /// The turn was another: nothing was claimed or renewed, the node must reconcile.
    Reconcile(LeaseStatus),
}

/// A job that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub id: JobId,
    /// Its row: what every outcome must name.
    pub token: Token,
    /// What is kept of it.
    pub record: Record,
    /// Crashes since its last settled outcome.
    pub crashes: u32,
}

/// Who is told when the head is due, so that not all come for one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Told the true head.
    Watcher,
    /// Told a quarter of a second after it.
    Standby,
}

/// Request of [`transfer`](super::Link::transfer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// The most jobs to claim, 1 to [`MOST_JOBS`].
    pub limit: usize,
    /// How long the lease is to last.
    pub lease: Duration,
    /// When to come again if nobody tells, jitter included.
    pub fallback: Duration,
}

/// Answer of [`transfer`](super::Link::transfer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transferred {
    /// Turn and rows after the step.
    pub lease_status: LeaseStatus,
    /// The store's clock, rounded down.
    pub clock: Timestamp,
    /// The role this node has now.
    pub role: Option<Role>,
    /// How long to sleep.
    pub sleep: Duration,
    /// More jobs are due than were claimed.
    pub more: bool,
    /// The earliest end of another node's lease.
    pub foreign_lease: Option<(NodeId, Timestamp)>,
    /// What was claimed, earliest due first.
    pub claims: Vec<Claim>,
    /// Ids that were removed because nothing is kept of them.
    pub dropped: Vec<JobId>,
}

/// What becomes of a job whose run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Done: gone, or kept as DONE for the `retain` of its record.
    Ack,
    /// As it was added, due again after this.
    Rejoin(RejoinDue),
    /// Failed, due again after this; the new front has the attempt and the error.
    Retry(Duration),
    /// Given back: due unchanged; to UNACKED if it was claimed by age.
    Rollback,
    /// To UNACKED; of a job that was claimed by age: kept there for another period.
    Park,
    /// Given up, for the cause in the new front.
    Dead,
    /// Forgotten, by `process_unacked`.
    Drop,
}

/// When a rejoined job is due again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejoinDue {
    /// After the delay it was added with.
    AsAdded,
    /// After this.
    After(Duration),
    /// At this time; after the delay it was added with when that is past.
    At(Timestamp),
}

/// One outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The job.
    pub id: JobId,
    /// The row of the run.
    pub token: Token,
    /// What becomes of it.
    pub change: Change,
    /// The new front, where it changed. The parking fence in it is ignored: that one is the store's.
    pub metadata: Option<Metadata>,
}

/// Request of [`settle`](super::Link::settle).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// How long the lease is to last from now.
    pub lease: Duration,
    /// At most [`MOST_JOBS`]; never one id twice.
    pub outcomes: Vec<Outcome>,
}

/// What became of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It took effect.
    Done,
    /// The job's row is another or gone: nothing was changed.
    Stale,
    /// Another program removed what was kept of the job, so nothing of it is left to put anywhere: it is gone. Only of
    /// outcomes that would have kept it.
    Dropped,
    /// This job alone could not be settled; it stays where it is.
    Failed(String),
}

/// Answer of [`settle`](super::Link::settle).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Turn and rows after the step.
    pub lease_status: LeaseStatus,
    /// A verdict for each outcome, in order.
    pub verdicts: Vec<Verdict>,
}

/// Request of [`renew`](super::Link::renew).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renew {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// How long the lease is to last from now.
    pub lease: Duration,
}

/// Request of [`isolate`](super::Link::isolate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolate {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// How long the lease is to last from now.
    pub lease: Duration,
    /// The job.
    pub id: JobId,
    /// The row of the run.
    pub token: Token,
}

/// Request of [`exhaust`](super::Link::exhaust).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhaust {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// How long the lease is to last from now.
    pub lease: Duration,
    /// The job.
    pub id: JobId,
    /// The row of the run.
    pub token: Token,
    /// The new front: exhausted, with cause and last error.
    pub metadata: Metadata,
}

/// Answer of [`isolate`](super::Link::isolate) and [`exhaust`](super::Link::exhaust).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// Turn and rows after the step.
    pub lease_status: LeaseStatus,
    /// Whether it was noted.
    pub note: NoteVerdict,
}

/// Whether something was noted of a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteVerdict {
    /// It was.
    Done,
    /// The job's row is another or gone.
    Stale,
    /// The run is under an unfenced end (deleted, cancelled, acked from outside): no handler may start.
    Ended,
}

/// Request of [`reconcile`](super::Link::reconcile).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// `None` is the first page, which takes a turn; later pages continue behind this id and must name that turn.
    pub after: Option<JobId>,
    /// The most rows to tell, 1 to [`MOST_JOBS`].
    pub limit: usize,
}

/// Answer of [`reconcile`](super::Link::reconcile).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// Turn and rows after the step.
    pub lease_status: LeaseStatus,
    /// Rows of this node, in order of their ids.
    pub rows: Vec<(JobId, Token)>,
    /// Where the next page continues; `None`: this was the last.
    pub next: Option<JobId>,
}

/// Request of [`reclaim`](super::Link::reclaim).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaim {
    /// The node that is taken for dead.
    pub node: NodeId,
    /// Its lease end as it was seen; if it differs, nothing is done.
    pub seen: Timestamp,
    /// The most rows to take, 1 to [`MOST_JOBS`].
    pub limit: usize,
    /// How many crashes exhaust a job.
    pub max_crashes: u32,
}

/// Answer of [`reclaim`](super::Link::reclaim).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// Rows that were taken.
    pub moved: usize,
    /// Rows that are left to take under this lease end; zero where it was another.
    pub left: usize,
}

/// Request of [`release`](super::Link::release).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
}

/// Request of [`sweep`](super::Link::sweep).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The last turn whose answer was read.
    pub last_seen: Sequence,
    /// The most UNACKED jobs to claim; as many of DEAD and of DONE are pruned at the most. 1 to [`MOST_JOBS`].
    pub limit: usize,
    /// How long the lease is to last.
    pub lease: Duration,
    /// How long a job must have been UNACKED to be claimed.
    pub unacked_age: Duration,
    /// How long DEAD jobs are kept.
    pub dead_kept: Duration,
    /// How many DEAD jobs are kept; the oldest go first.
    pub dead_most: usize,
}

/// Answer of [`sweep`](super::Link::sweep).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Turn and rows after the step.
    pub lease_status: LeaseStatus,
    /// The store's clock, rounded down.
    pub clock: Timestamp,
    /// UNACKED jobs that were claimed, for `process_unacked`.
    pub claims: Vec<Claim>,
    /// DEAD jobs that were forgotten.
    pub pruned_dead: usize,
    /// DONE jobs that were forgotten.
    pub pruned_done: usize,
    /// There is more of one of them.
    pub more: bool,
}

/// Request of [`publish`](super::Link::publish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish {
    /// The most broadcasts to publish or drop, 1 to [`MOST_JOBS`].
    pub limit: usize,
    /// When to come again if nobody tells, jitter included.
    pub fallback: Duration,
    /// A broadcast without an `expires_after` of its own is dropped this long after its due time.
    pub expires_after: Duration,
}

/// Answer of [`publish`](super::Link::publish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// How many were published.
    pub published: usize,
    /// How many were dropped because nobody served them in time.
    pub dropped: usize,
    /// How long to sleep.
    pub sleep: Duration,
    /// More are due.
    pub more: bool,
}

/// Request of [`wake`](super::Link::wake).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake;

/// Request of [`scan`](super::Link::scan).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan;

/// Answer of [`scan`](super::Link::scan).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// The store's clock, rounded down.
    pub clock: Timestamp,
    /// Every node that holds jobs of the topic, and the end of its lease.
    pub leases: Vec<(NodeId, Timestamp)>,
    /// How many jobs are kept.
    pub records: usize,
    /// How many are in a place. A difference that stays is a defect and is reported.
    pub places: usize,
}
