//! How a `file:` store works.

use std::sync::Arc;

use crate::environment::{StoreClock, most_memory};
use crate::store::Durability;

/// Who writes and syncs the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Commits {
    /// A thread of the store, as soon as something changes. Callers that come meanwhile share its next sync.
    OnOwnThread,
    /// The caller of a step that waits: for tests under a paused clock, where no other thread may work.
    AtOnce,
    /// Whoever calls [`FileStore::commit`](super::FileStore::commit): for simulations.
    ByHand,
}

/// How a `file:` store works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileOptions {
    /// What due times and leases are judged by. Default: the wall clock.
    pub clock: Arc<dyn StoreClock>,
    /// When an answer comes. Default: [`Durability::Local`], when it is synced.
    pub durability: Durability,
    /// Who commits. Default: [`Commits::OnOwnThread`].
    pub commits: Commits,
    /// A snapshot is taken once the journal has grown by this many bytes since the last one, and by its size. Default: 64 MiB. With 0
    /// one snapshot follows the other: for tests and measurements.
    pub snapshot_bytes: u64,
    /// A new file of the journal begins once one has this many bytes. Default: 64 MiB.
    pub segment_bytes: u64,
    /// Steps are refused while more bytes than this wait to be written. Default: 256 MiB.
    pub unwritten_bytes: u64,
    /// Adds, imports and growing updates are refused once the jobs take so much memory, as the store counts it. Default: three
    /// quarters of what the machine or the container has, if the system tells; otherwise there is no limit.
    pub max_memory: Option<u64>,
}

impl FileOptions {
    pub(super) fn new(clock: Arc<dyn StoreClock>) -> Self {
        Self {
            clock,
            durability: Durability::Local,
            commits: Commits::OnOwnThread,
            snapshot_bytes: 64 << 20,
            segment_bytes: 64 << 20,
            unwritten_bytes: 256 << 20,
            max_memory: most_memory().map(|most| most / 4 * 3),
        }
    }
}
