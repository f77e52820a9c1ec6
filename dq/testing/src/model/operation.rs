//! The operations of a history, in terms that make sense in every state, so that a shrunk history still means the same.
//!
//! Numbers stand for jobs, nodes and producers. A sequence number, token, fence or lease end is described by what it is at that
//! moment: the right one, an old one or a wrong one. [`ClusterState`](super::cluster::ClusterState) turns an operation into a
//! request.

use std::time::Duration;

use dq::job::{Delivery, Priority};
use dq::store::{CommandKind, OnDuplicate};

/// The numbers of jobs, nodes and producers.
pub(super) const JOBS: u8 = 4;
pub(super) const NODES: u8 = 3;
pub(super) const PRODUCERS: u8 = 2;

/// The ageing of all nodes.
pub(super) const AGEING: Duration = Duration::from_secs(2);

/// One operation of a history: a request, or a change of the store's clock.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// The store's clock moves forward by this many µs.
    Forward(u64),
    /// The store's clock moves forward beyond every due time.
    End,
    /// The store's clock jumps back by this many ms.
    Back(u64),
    /// The store's clock moves forward until this node's lease has expired.
    PastLease(u8),
    /// The store's clock moves forward to the earliest due time, or to one µs before it.
    ToDue {
        early: bool,
    },
    Batch {
        producer: u8,
        number: Number,
        what: Batch,
        lost: bool,
    },
    /// The producer sends an earlier batch again under its number: the last but `back`.
    Repeat {
        producer: u8,
        back: u8,
    },
    Transfer {
        node: u8,
        sequence: Sequence,
        limit: usize,
        lease: u64,
        lookahead: u64,
        lost: bool,
    },
    Settle {
        by: By,
        sequence: Sequence,
        outcomes: Vec<OutcomeItem>,
        lost: bool,
    },
    Renew {
        node: u8,
        sequence: Sequence,
        lease: u64,
    },
    Isolate {
        run: Run,
        alone: bool,
    },
    Exhaust(Run),
    /// Its numbers are few, so that many notes come after later ones. A large state has the most bytes that it may.
    Note {
        run: Run,
        number: u64,
        is_large: bool,
    },
    Reconcile {
        node: u8,
        sequence: Sequence,
        behind: Option<u8>,
        limit: usize,
        lost: bool,
    },
    Reclaim {
        node: u8,
        of: u8,
        seen: LeaseEnd,
        limit: usize,
        max_crashes: u32,
    },
    Release {
        node: u8,
        sequence: Sequence,
    },
    /// How many DEAD and DONE jobs stay at most.
    Sweep {
        node: u8,
        sequence: Sequence,
        limit: usize,
        park_timeout: u64,
        dead_retention: u64,
        most: (usize, Option<usize>),
    },
    Publish {
        node: u8,
        limit: usize,
        expires_after: u64,
    },
    Wake {
        node: u8,
    },
    /// The node takes a new link, and the producer a new handle.
    Reconnect {
        node: u8,
        producer: u8,
    },
}

/// What a batch asks for.
#[derive(Debug, Clone)]
pub(super) enum Batch {
    Add(Vec<AddItem>),
    Command(Vec<CommandItem>),
    Change(Vec<ChangeItem>),
    Set(Setting),
}

/// The number of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Next,
    /// Skips this many numbers, as of batches that were given up.
    Gap(u8),
    /// This much below the highest number, if no batch had that number; otherwise the next number.
    Below(u8),
}

/// A job of an `add`.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddItem {
    pub(super) job: u8,
    pub(super) due: Due,
    pub(super) expires_after: Option<u64>,
    pub(super) retain: u64,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) deliver: Delivery,
    pub(super) priority: Priority,
    /// For how long the id stays taken, in ms.
    pub(super) unique_for: Option<u64>,
}

/// When a job is due, in ms: after a delay, at a time relative to now, or after the usual delay.
#[derive(Debug, Clone, Copy)]
pub(super) enum Due {
    After(u64),
    In(i64),
    Usual(u64),
}

/// What a `set` changes, in ms.
#[derive(Debug, Clone, Copy)]
pub(super) enum Setting {
    Resume,
    Undrain,
    Delay(Option<u64>),
    Drain,
    Pause(Option<Due>),
    Waiting(Option<usize>),
}

/// A command of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandItem {
    pub(super) job: u8,
    pub(super) verb: CommandKind,
    pub(super) fence: Fence,
    pub(super) version: Version,
}

/// A change of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangeItem {
    pub(super) job: u8,
    pub(super) what: What,
    pub(super) version: Version,
}

/// What a change does; times in ms.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Reschedule(Due),
    ExtendBy(u64),
    RunNow,
    Update,
    Options { headers: bool, retain: bool },
}

/// Which version a command or a change names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Version {
    Any,
    Right,
    Wrong,
}

/// Which run a command names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fence {
    None,
    /// The run that holds the job, or the one that parked it.
    Right,
    /// The last run but this many.
    Old(u8),
    /// A run that never existed.
    Wrong,
}

/// An outcome of a `settle`.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutcomeItem {
    pub(super) job: u8,
    pub(super) token: Token,
    pub(super) change: Change,
    /// Whether it has new metadata, with one attempt more and a forged parking fence.
    pub(super) metadata: bool,
}

/// What the outcome does; times in ms.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Ack,
    RejoinAsAdded,
    RejoinAfter(u64),
    RejoinIn(i64),
    Retry(u64),
    Rollback,
    Park,
    Dead,
    Drop,
    Tick {
        /// In how many ms the next tick is; `None`: there is none.
        next: Option<i64>,
        /// The job of the tick, and where it goes.
        adds: u8,
        deliver: Delivery,
        /// No job is added until this one has ended.
        unless: Option<u8>,
    },
}

/// The run that a request names, and who sends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) by: By,
    pub(super) sequence: Sequence,
    pub(super) job: u8,
    pub(super) token: Token,
}

/// The node that sends a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// The node that holds the (first) job.
    Holder,
    Node(u8),
}

/// Which token a request names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token {
    Right,
    /// The token of the last run but this many.
    Old(u8),
    OtherDue,
}

/// Which sequence number a request names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sequence {
    /// The one that the store has.
    Right,
    /// The one that the node has last seen.
    LastSeen,
    /// The one that the store has, plus this.
    Off(i8),
}

/// Which lease end a reclaim names.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeaseEnd {
    Right,
    /// An earlier end: the last but this many.
    Old(u8),
    Zero,
}

/// How a history ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    /// Whether a command acks every job first, without a fence.
    acked: bool,
    /// Whether the node that claims the aged jobs crashes.
    crashed: bool,
}

impl Ending {
    /// The ending of the history with this seed.
    pub(super) const fn of(seed: u64) -> Self {
        Self { acked: seed.is_multiple_of(2), crashed: seed.is_multiple_of(3) }
    }

    /// The topic has its first state again. The nodes give back all runs, claim all parked jobs by age and give them back;
    /// commands requeue all jobs; a node claims them once more, which shows crashes and pending commands that no answer has
    /// shown yet; then everything is deleted.
    pub(super) fn operations(self) -> Vec<Operation> {
        let sequence = Sequence::Right;
        let each = || 0..JOBS;
        let give_back = |job| OutcomeItem { job, token: Token::Right, change: Change::Rollback, metadata: false };
        let back = |job| Operation::Settle { by: By::Holder, sequence, outcomes: vec![give_back(job)], lost: false };
        let batch = |what| Operation::Batch { producer: 0, number: Number::Next, what, lost: false };
        let all = |verb| {
            let item = |job| CommandItem { job, verb, fence: Fence::None, version: Version::Any };
            batch(Batch::Command(each().map(item).collect()))
        };
        let reconcile = |node| Operation::Reconcile { node, sequence, behind: None, limit: 1_000, lost: false };
        let set = |setting| batch(Batch::Set(setting));
        let mut operations: Vec<_> = (0..NODES).map(reconcile).collect();
        operations.extend([Setting::Resume, Setting::Undrain, Setting::Delay(None), Setting::Waiting(None)].map(set));
        operations.extend(self.acked.then(|| all(CommandKind::Ack)));
        operations.extend(each().map(back));
        operations.push(Operation::End);
        let (limit, dead_retention, most) = (1_000, 1_000_000_000, (100, None));
        operations.push(Operation::Sweep { node: 1, sequence, limit, park_timeout: 0, dead_retention, most });
        if self.crashed {
            operations.push(Operation::End);
            operations.push(Operation::Reclaim { node: 0, of: 1, seen: LeaseEnd::Right, limit: 1_000, max_crashes: 9 });
        } else {
            operations.extend(each().map(back));
        }
        operations.push(all(CommandKind::Requeue));
        // A requeue rounds the due time up to the next millisecond.
        operations.push(Operation::Forward(1_000));
        let (lease, lookahead) = (15_000, 0);
        operations.push(Operation::Transfer { node: 0, sequence, limit, lease, lookahead, lost: false });
        operations.extend(each().map(back));
        operations.push(Operation::Publish { node: 2, limit: 1_000, expires_after: 3_600_000 });
        operations.push(all(CommandKind::Delete));
        operations
    }
}
