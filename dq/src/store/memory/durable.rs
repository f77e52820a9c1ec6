//! What a memory store needs to become durable: where its changes go, and what an answer waits for.
//!
//! `memory:` has no sink: nothing is noted, encoded or waited for. With a [`Sink`], each step hands over what it has changed
//! while it holds the lock of its topic, so the changes of a topic have the order of its steps. The answer of a step that
//! promises something then waits until the sink has confirmed the changes.

use std::fmt;
use std::sync::Arc;

use crate::job::{Fence, TopicKey};
use crate::store::{Pending, RequestKind, StoreError};

/// Where changes end in a journal: so many bytes come before it. Positions grow and are never used again; zero is before all changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Keeps the changes of all topics of a store, in the order of the calls.
pub trait Sink: fmt::Debug + Send + Sync + 'static {
    /// Called before each step whose answer may have to wait, without a lock. A sink that cannot take changes refuses the step
    /// here, so that nothing is done. Renewals, queries and signals need no sink and go on.
    ///
    /// # Errors
    /// An error of which [`StoreError::nothing_done`] holds.
    fn admit(&self, operation: &'static str) -> Result<(), StoreError>;

    /// Takes the changes of one step; called under the lock of the topic, so it must not wait. `fence` is the highest fence that
    /// the topic has given out, this step included. Returns where the changes end. The changes of a large step come in several
    /// parts of about a MiB, one call after the other: each is whole rows, and the step is confirmed once its last part is, so it
    /// does no harm if a crash takes the later parts.
    fn append(&self, topic: &TopicKey, changes: &[u8], fence: Fence) -> Position;

    /// Tells what the jobs of the store take in memory, before the changes of each step. A sink that notes it lets a later opening know
    /// how much it needs.
    fn note_memory(&self, _bytes: u64) {}

    /// Waits until everything up to `position` is as durable as the store promises; `None` if it is already, or if the store
    /// promises nothing. The error must be one that means *unknown*: the step was done, and may be lost.
    fn confirm(&self, operation: &'static str, position: Position) -> Option<Pending<()>>;

    /// Waits until no process that opens the store later can give out `fence` or a smaller one; `None` if that is so already.
    fn confirm_fence(&self, operation: &'static str, fence: Fence) -> Option<Pending<()>>;
}

/// What the answer of a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waits {
    /// Until all changes that the step has made or seen are confirmed. A repeat or a refusal counts as well: it may tell of
    /// changes that are not confirmed yet.
    changes: bool,
    /// Until no later process can give out the fence of the step.
    fence: bool,
}

impl Waits {
    pub(super) const fn is_any(self) -> bool {
        self.changes || self.fence
    }

    /// An `add` or a `command`.
    pub(super) const CHANGES: Self = Self { changes: true, fence: false };

    /// A claim is not waited for: after a crash the job is where it was, and runs again. Its fence is, because fences never fall.
    /// What only reads, renews or signals waits for nothing.
    pub(super) const fn of(kind: RequestKind) -> Self {
        match kind {
            RequestKind::Transfer => Self { changes: false, fence: true },
            RequestKind::Sweep => Self { changes: true, fence: true },
            RequestKind::Settle
            | RequestKind::Isolate
            | RequestKind::Exhaust
            | RequestKind::Note
            | RequestKind::Reclaim
            | RequestKind::Release
            | RequestKind::Publish
            | RequestKind::Recover => Self::CHANGES,
            RequestKind::Renew
            | RequestKind::Reconcile
            | RequestKind::Wake
            | RequestKind::Scan
            | RequestKind::Audit => Self { changes: false, fence: false },
        }
    }
}

/// Where a topic was after a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct After {
    /// The end of the last changes of the topic.
    pub(super) position: Position,
    /// The highest fence of the topic.
    pub(super) fence: Fence,
}

/// The sink of one topic.
#[derive(Debug, Clone)]
pub(super) struct TopicSink {
    pub(super) topic: TopicKey,
    pub(super) sink: Arc<dyn Sink>,
}

impl TopicSink {
    /// What the answer of a step waits for; `None`: nothing.
    pub(super) fn confirm(&self, operation: &'static str, waits: Waits, after: After) -> Option<Pending<()>> {
        let changes = if waits.changes { self.sink.confirm(operation, after.position) } else { None };
        let fence = if waits.fence { self.sink.confirm_fence(operation, after.fence) } else { None };
        match (changes, fence) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one),
            (Some(changes), Some(fence)) => Some(Box::pin(async move {
                changes.await?;
                fence.await
            })),
        }
    }
}
