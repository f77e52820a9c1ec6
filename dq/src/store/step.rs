//! Requests and answers of the steps a node takes (section 3 of the protocol).
//!
//! Durations and limits travel with the requests: a store has no settings of its own for them.

use std::sync::Arc;
use std::time::Duration;

use super::outbox::FollowUpBatches;
use super::topic_state::TopicState;
use crate::job::{Isolation, JobId, Metadata, NodeId, Sequence, Token};
use crate::time::Timestamp;

pub use crate::schedule::{Tick, TickJob};

mod claim;
mod note;

pub use claim::Claim;
pub use note::{Exhaust, Note, NoteVerdict, Noted, Noting};

/// The most jobs that one step may touch.
pub const MAX_JOBS: usize = 1_000;

/// How many bytes of records a step usually touches at most. A request names its own number; the answer to a batch of
/// commands has at most this many bytes of removed records, unless the first alone has more.
pub const DEFAULT_BYTES: usize = 1 << 20;

/// The longest lease. A store cuts a lease that ends later.
pub const MAX_LEASE: Duration = Duration::from_secs(300);

/// The end of the lease of a node whose process has certainly ended, because the store belonged to it: its rows are free for
/// reclaim at once, and a crash is charged (rule 20). No lease that a node was granted ends then.
pub const DEAD_LEASE: Timestamp = Timestamp::from_millis(1);

/// Whether the rows under a lease that ends then may be reclaimed at once: its node has released it, or is certainly dead. Any
/// other expired lease must be watched for a while first (rule 20).
pub fn is_free_lease(end: Timestamp) -> bool {
    end == Timestamp::EPOCH || end == DEAD_LEASE
}

/// How long after its holder should have acted a role lapses.
pub const ROLE_SLACK: Duration = Duration::from_millis(200);

/// How long after the head is due the standby watcher should transfer.
pub const STANDBY_DELAY: Duration = Duration::from_millis(250);

/// The store's view of a node, in every answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseStatus {
    /// The last sequence number of this node that the store executed; zero if it knows none.
    pub sequence: Sequence,
    /// How many jobs this node holds, by the store's records.
    pub rows: usize,
}

/// The answer of a step that needs the right sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sequenced<T> {
    /// The sequence number was right: the store executed the step.
    Done(T),
    /// The sequence number was wrong: the store claimed and renewed nothing, and the node must reconcile.
    Reconcile(LeaseStatus),
}

/// The role of a node that learns when the head is due. Other nodes learn only the fallback, so that they do not all
/// transfer for one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The node sleeps until the head is due.
    Watcher,
    /// The node sleeps until a quarter of a second after the head is due.
    Standby,
}

/// Request of [`transfer`](super::Request::Transfer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// The most jobs to claim, 1 to [`MAX_JOBS`].
    pub limit: usize,
    /// The most bytes of records in the answer. The store claims one job at least, whatever its size.
    pub bytes: usize,
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// How long the node sleeps at most, jitter included.
    pub fallback: Duration,
    /// Jobs that become due within this time are claimed as well, and the node comes half of it before the head is due
    /// ([`comes_ahead`](Self::comes_ahead)). In whole milliseconds.
    pub lookahead: Duration,
}

impl Transfer {
    /// A request of the usual size, which does not look ahead, of a node that sleeps for its lease at most.
    pub const fn new(last_seen: Sequence, limit: usize, lease: Duration) -> Self {
        Self { last_seen, limit, bytes: DEFAULT_BYTES, lease, fallback: lease, lookahead: Duration::ZERO }
    }

    /// How long before the head is due a node comes that looks ahead: half of it, rounded up to the millisecond. So it also
    /// claims what is due shortly behind the head.
    pub const fn comes_ahead(lookahead: Duration) -> Duration {
        Duration::from_millis((lookahead.as_millis() as u64).div_ceil(2))
    }
}

/// Answer of [`transfer`](super::Request::Transfer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transferred {
    /// The lease status after the step.
    pub lease_status: LeaseStatus,
    /// The store's clock, rounded down.
    pub clock: Timestamp,
    /// The same clock, in microseconds since the Unix epoch.
    pub micros: u64,
    /// The role of this node now.
    pub role: Option<Role>,
    /// How long the node should sleep.
    pub sleep: Duration,
    /// More jobs are due than were claimed.
    pub more: bool,
    /// The earliest end of another node's lease.
    pub foreign_lease: Option<(NodeId, Timestamp)>,
    /// The claimed jobs, earliest due first.
    pub claims: Vec<Claim>,
    /// Ids that the store removed because it has no record of them.
    pub dropped: Vec<JobId>,
    /// What callers have set for the topic; `None`: nothing.
    pub state: Option<Box<TopicState>>,
    /// While the topic drains and is not paused: how many jobs that were due then wait, [`MAX_LEFT`](super::MAX_LEFT) at most.
    pub left: usize,
}

/// What the store does with a job whose run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Remove it, or keep it as DONE for the `retain` of its record.
    Ack,
    /// As it was added, due again after this.
    Rejoin(RejoinDue),
    /// Failed, due again after this. The new metadata has the attempt and the error.
    Retry(Duration),
    /// Give it back with its old due time. A job that a sweep claimed becomes UNACKED.
    Rollback,
    /// Make it UNACKED. A job that a sweep claimed stays so for another period.
    Park,
    /// Make it DEAD, for the cause in the new metadata.
    Dead,
    /// Remove it, as `on_park_timeout` decided.
    Drop,
    /// End it in this way, and write its follow-ups into the outbox of the topic (rule 18).
    Then(Ending, Arc<FollowUpBatches>),
    /// The job is a schedule that had a tick: add the jobs of the tick, and make the schedule due at the next one.
    Tick(Box<Tick>),
}

/// How a run ends that has follow-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As with [`Change::Ack`].
    Ack,
    /// As with [`Change::Dead`].
    Dead,
}

impl Change {
    /// The change without its follow-ups.
    pub const fn alone(&self) -> &Self {
        match self {
            Self::Then(Ending::Ack, _) => &Self::Ack,
            Self::Then(Ending::Dead, _) => &Self::Dead,
            change => change,
        }
    }

    /// Its follow-ups.
    pub fn follow_ups(&self) -> Option<&FollowUpBatches> {
        if let Self::Then(_, follow_ups) = self { Some(follow_ups) } else { None }
    }
}

/// When a rejoined job is due again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejoinDue {
    /// After the delay it was added with.
    AsAdded,
    /// After this delay.
    After(Duration),
    /// At this time; if it has passed, after the delay that the job was added with.
    At(Timestamp),
    /// After this delay, until which the group of the job is paused, or the topic if it has no group (rule 29).
    BackOff(Duration),
}

/// What a run asks the store to do with its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The job.
    pub id: JobId,
    /// The token of the run.
    pub token: Token,
    /// What to do with the job.
    pub change: Change,
    /// The new metadata, if it changed. The store ignores the parking fence in it and keeps its own.
    pub metadata: Option<Metadata>,
}

/// Request of [`settle`](super::Request::Settle).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// The most bytes of replacements that move. At least one outcome is settled; those beyond get [`Verdict::Later`].
    pub bytes: usize,
    /// At most [`MAX_JOBS`], the jobs of ticks included, with different ids. Ticks take effect behind the others.
    pub outcomes: Vec<Outcome>,
}

impl Settle {
    /// How many jobs the step touches: those of the outcomes, and those that ticks add.
    pub fn jobs(&self) -> usize {
        let added = |outcome: &Outcome| match &outcome.change {
            Change::Tick(tick) => tick.jobs.len(),
            _ => 0,
        };
        self.outcomes.len() + self.outcomes.iter().map(added).sum::<usize>()
    }
}

/// The store's answer to an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The outcome took effect.
    Done,
    /// The job has another token, or the node does not hold it: the store changed nothing.
    Stale,
    /// Another program removed the record of the job, so the job is gone. Only outcomes that keep a job get this
    /// answer.
    Dropped,
    /// The store changed nothing, because the request has reached its bytes: send the outcome again.
    Later,
    /// The store could not settle this job and left it as it is. The text is the reason.
    Failed(String),
}

/// Answer of [`settle`](super::Request::Settle).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The lease status after the step.
    pub lease_status: LeaseStatus,
    /// A verdict for each outcome, in order.
    pub verdicts: Vec<Verdict>,
}

/// Request of [`renew`](super::Request::Renew).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renew {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// How long the lease lasts from now.
    pub lease: Duration,
}

/// Request of [`isolate`](super::Request::Isolate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolate {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// How the jobs are about to run; `None`: nothing is noted, and the answer says under which ends the runs are.
    pub isolation: Option<Isolation>,
    /// The jobs and the tokens of their runs, 1 to [`MAX_JOBS`], with different ids.
    pub runs: Vec<(JobId, Token)>,
}

/// Answer of [`isolate`](super::Request::Isolate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolated {
    /// The lease status after the step.
    pub lease_status: LeaseStatus,
    /// What was noted, for each run in the order of the request; `None`: nothing, because of another sequence number.
    pub notes: Option<Vec<NoteVerdict>>,
}

/// Where a page of rows or records continues. Only the store that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowCursor(String);

impl RowCursor {
    /// The cursor with this text, as a store gives it out.
    #[cfg(feature = "redis")]
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The cursor behind this id of a node that has a few rows only.
    pub fn behind(id: &JobId) -> Self {
        Self(format!("0:{id}"))
    }
}

/// Request of [`reconcile`](super::Request::Reconcile).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// `None` asks for the first page, which takes a new sequence number. A later page continues there and names that number.
    pub after: Option<RowCursor>,
    /// The most rows to return, 1 to [`MAX_JOBS`]. A row has at most 300 bytes.
    pub limit: usize,
}

/// Answer of [`reconcile`](super::Request::Reconcile).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// The lease status after the step.
    pub lease_status: LeaseStatus,
    /// Rows of this node, fewer than the limit perhaps. A row that stays is in one of the pages, or in several.
    pub rows: Vec<(JobId, Token)>,
    /// Where the next page continues; `None` means that this was the last.
    pub next: Option<RowCursor>,
    /// The clock of the first `reconcile` of any node, µs. Another one than before: the store was emptied meanwhile. 0 where that
    /// cannot happen while a node lives.
    pub born: u64,
}

/// Request of [`reclaim`](super::Request::Reclaim).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaim {
    /// The node that seems dead.
    pub node: NodeId,
    /// The end of its lease, as the caller saw it. If it differs, the store does nothing.
    pub seen: Timestamp,
    /// The most rows to take, 1 to [`MAX_JOBS`].
    pub limit: usize,
    /// The most bytes of replacements that the store moves into the places of these jobs. The store takes one row at least.
    pub bytes: usize,
    /// The crash cap of rule 19. Zero counts as one.
    pub max_crashes: u32,
}

/// Answer of [`reclaim`](super::Request::Reclaim).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimed {
    /// How many rows the store took.
    pub moved: usize,
    /// How many rows are left to take under this lease end; zero if the lease end differs.
    pub left: usize,
}

/// Request of [`release`](super::Request::Release).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
}

/// Request of [`sweep`](super::Request::Sweep).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The last sequence number whose answer the node has read.
    pub last_seen: Sequence,
    /// The most UNACKED jobs to claim, and the most DEAD and DONE jobs to prune, each 1 to [`MAX_JOBS`].
    pub limit: usize,
    /// The most bytes of records in the answer. The store claims one aged job at least, whatever its size.
    pub bytes: usize,
    /// How long the lease lasts from now.
    pub lease: Duration,
    /// How long a job must be UNACKED before the sweep claims it.
    pub park_timeout: Duration,
    /// How long the store keeps DEAD jobs.
    pub dead_retention: Duration,
    /// How many DEAD jobs the store keeps; it removes the oldest first.
    pub dead_max: usize,
    /// How many DONE jobs the store keeps; it removes those first whose retention ends first. `None`: any number.
    pub done_max: Option<usize>,
}

/// Answer of [`sweep`](super::Request::Sweep).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The lease status after the step.
    pub lease_status: LeaseStatus,
    /// The store's clock, rounded down.
    pub clock: Timestamp,
    /// The UNACKED jobs that the sweep claimed, for `on_park_timeout`.
    pub claims: Vec<Claim>,
    /// How many DEAD jobs the sweep pruned.
    pub pruned_dead: usize,
    /// How many DONE jobs the sweep pruned.
    pub pruned_done: usize,
    /// There are more jobs to claim or prune.
    pub more: bool,
    /// As in the answer of a transfer.
    pub state: Option<Box<TopicState>>,
}

/// Request of [`publish`](super::Request::Publish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish {
    /// The most broadcasts to publish or drop, 1 to [`MAX_JOBS`].
    pub limit: usize,
    /// The most bytes of records to publish or drop. The store takes one broadcast at least, whatever its size.
    pub bytes: usize,
    /// How long the node sleeps at most, jitter included.
    pub fallback: Duration,
    /// How long after its due time the store drops a broadcast that has no `expires_after` of its own.
    pub expires_after: Duration,
}

/// Answer of [`publish`](super::Request::Publish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// How many broadcasts the step published.
    pub published: usize,
    /// How many broadcasts the step dropped because no node published them in time.
    pub dropped: usize,
    /// The number of the last broadcast that was ever published on this channel; zero if none was.
    pub last_number: u64,
    /// How long the node should sleep.
    pub sleep: Duration,
    /// More broadcasts are due.
    pub more: bool,
}

/// Request of [`wake`](super::Request::Wake).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake;

/// Request of [`audit`](super::Request::Audit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Where to go on; `None`: at the beginning.
    pub after: Option<RowCursor>,
    /// About how many records to look at, 1 to [`MAX_JOBS`].
    pub limit: usize,
    /// About how many bytes these records have.
    pub bytes: usize,
}

/// Answer of [`audit`](super::Request::Audit).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Jobs that have a record and neither a place nor a row. One of them may have another record.
    pub lost: Vec<JobId>,
    /// Where the next page continues; `None` means that this was the last.
    pub next: Option<RowCursor>,
}

/// Request of [`recover`](super::Request::Recover).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recover {
    /// Jobs that an audit found, at most [`MAX_JOBS`].
    pub ids: Vec<JobId>,
    /// The most bytes of replacements that the store moves into the places of these jobs. The store takes one job at least.
    pub bytes: usize,
}

/// Answer of [`recover`](super::Request::Recover).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The jobs that were still lost and are back.
    pub recovered: Vec<JobId>,
    /// How many of the ids, from the first on, the store has looked at.
    pub examined: usize,
}

/// Request of [`scan`](super::Request::Scan).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan;

/// Answer of [`scan`](super::Request::Scan).
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
    /// The outbox may have entries, so a node relays.
    pub follow_ups: bool,
    /// As in the answer of a transfer.
    pub state: Option<Box<TopicState>>,
    /// As in the answer of a transfer.
    pub left: usize,
}
