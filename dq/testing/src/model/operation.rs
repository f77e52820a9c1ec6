//! Steps in words that mean something in every state, so that a history that is shrunk still says the same.
//!
//! Jobs, nodes and producers are told by their number. What a request names (a turn, a token, a fence, a lease end) is told by
//! what it is to the world at that moment: the right one, an old one, a wrong one.

use dq::job::Deliver;
use dq::store::{CommandKind, OnDuplicate};

/// How many jobs, nodes and producers there are.
pub(super) const JOBS: u8 = 4;
pub(super) const NODES: u8 = 3;
pub(super) const PRODUCERS: u8 = 2;

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// The store's clock moves on by so many µs.
    Forward(u64),
    /// The store's clock moves on beyond every due time.
    End,
    /// The store's clock jumps back by so many ms.
    Back(u64),
    /// The store's clock moves on until this node's lease has run out.
    PastLease(u8),
    /// The store's clock moves on to the earliest due time, or to one µs before it.
    ToDue {
        early: bool,
    },
    Add {
        producer: u8,
        number: Number,
        jobs: Vec<Adding>,
        lost: bool,
    },
    Command {
        producer: u8,
        number: Number,
        items: Vec<Withdrawing>,
        lost: bool,
    },
    /// A batch is sent again under its number: the last but so many.
    Repeat {
        producer: u8,
        back: u8,
    },
    Transfer {
        node: u8,
        sequence: Sequence,
        limit: usize,
        lease: u64,
        lost: bool,
    },
    Settle {
        by: By,
        sequence: Sequence,
        outcomes: Vec<Settling>,
        lost: bool,
    },
    Renew {
        node: u8,
        sequence: Sequence,
        lease: u64,
    },
    Isolate {
        by: By,
        sequence: Sequence,
        job: u8,
        token: Token,
    },
    Exhaust {
        by: By,
        sequence: Sequence,
        job: u8,
        token: Token,
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
        seen: Seen,
        limit: usize,
        max_crashes: u32,
    },
    Release {
        node: u8,
        sequence: Sequence,
    },
    Sweep {
        node: u8,
        sequence: Sequence,
        limit: usize,
        unacked_age: u64,
        dead_kept: u64,
        dead_most: usize,
    },
    Publish {
        node: u8,
        limit: usize,
        expires_after: u64,
    },
    Wake {
        node: u8,
    },
    /// The node takes a new link, or the producer a new handle.
    Anew {
        node: u8,
        producer: u8,
    },
}

/// The number of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Next,
    /// So many are left out: batches that were given up.
    Gap(u8),
    /// One that was left out, or as good: below the highest, so many.
    Below(u8),
}

/// A job to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adding {
    pub(super) job: u8,
    pub(super) due: Due,
    pub(super) expires_after: Option<u64>,
    pub(super) retain: u64,
    pub(super) on_duplicate: OnDuplicate,
    pub(super) deliver: Deliver,
}

/// When it is due, ms.
#[derive(Debug, Clone, Copy)]
pub(super) enum Due {
    After(u64),
    In(i64),
}

/// A withdrawal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Withdrawing {
    pub(super) job: u8,
    pub(super) verb: CommandKind,
    pub(super) fence: Fence,
}

/// Which run a withdrawal names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fence {
    None,
    /// The run that holds the job, or the one that parked it.
    Right,
    /// The last run but so many.
    Old(u8),
    /// A run that never was.
    Wrong,
}

/// An outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settling {
    pub(super) job: u8,
    pub(super) token: Token,
    pub(super) change: Change,
    /// With a new front, which says one attempt more and claims another parking fence.
    pub(super) metadata: bool,
}

/// A change, ms.
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
}

/// Who asks.
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
    /// Of the last run but so many.
    Old(u8),
    OtherDue,
}

/// Which turn a request names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sequence {
    /// The one the store has.
    Right,
    /// The last one that the node has heard.
    Heard,
    /// So many more than the one the store has.
    Off(i8),
}

/// Which lease end a reclaim names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen {
    Right,
    /// One that was seen before, the last but so many.
    Old(u8),
    Zero,
}

/// How a history is brought to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    /// Whatever runs is acked, whichever run it is.
    acked: bool,
    /// The node that claims what is parked dies with it.
    crashed: bool,
}

impl Ending {
    /// Of the history of this seed.
    pub(super) const fn of(seed: u64) -> Self {
        Self { acked: seed.is_multiple_of(2), crashed: seed.is_multiple_of(3) }
    }

    /// Runs are given back, all that is parked is claimed by age and given back, all that can be is sent back and claimed once
    /// more, which shows what crashes and marks nobody has seen; then everything is deleted.
    pub(super) fn steps(self) -> Vec<Operation> {
        let sequence = Sequence::Right;
        let each = || 0..JOBS;
        let settling = |job| Settling { job, token: Token::Right, change: Change::Rollback, metadata: false };
        let back = |job| Operation::Settle { by: By::Holder, sequence, outcomes: vec![settling(job)], lost: false };
        let all = |verb| {
            let items = each().map(|job| Withdrawing { job, verb, fence: Fence::None }).collect();
            Operation::Command { producer: 0, number: Number::Next, items, lost: false }
        };
        let reconcile = |node| Operation::Reconcile { node, sequence, behind: None, limit: 1_000, lost: false };
        let mut steps: Vec<_> = (0..NODES).map(reconcile).collect();
        steps.extend(self.acked.then(|| all(CommandKind::Ack)));
        steps.extend(each().map(back));
        steps.push(Operation::End);
        steps.push(Operation::Sweep {
            node: 1,
            sequence,
            limit: 1_000,
            unacked_age: 0,
            dead_kept: 1_000_000_000,
            dead_most: 100,
        });
        if self.crashed {
            steps.push(Operation::End);
            steps.push(Operation::Reclaim { node: 0, of: 1, seen: Seen::Right, limit: 1_000, max_crashes: 9 });
        } else {
            steps.extend(each().map(back));
        }
        steps.push(all(CommandKind::Requeue));
        // What is due a little later in this millisecond is due in the next one.
        steps.push(Operation::Forward(1_000));
        steps.push(Operation::Transfer { node: 0, sequence, limit: 1_000, lease: 15_000, lost: false });
        steps.extend(each().map(back));
        steps.push(Operation::Publish { node: 2, limit: 1_000, expires_after: 3_600_000 });
        steps.push(all(CommandKind::Delete));
        steps
    }
}
