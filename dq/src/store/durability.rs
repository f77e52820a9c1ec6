//! What the `Ok` of an add or a command promises beyond that the store has executed it.

use std::time::Duration;

/// When an add or a command (delete, cancel, ack, requeue) succeeds.
///
/// dq never waits for replicas to confirm the outcome of a run: if a failover undoes it, the job runs again, which *at
/// least once* allows. The guide to deploying on Redis lists what a failover can undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When the store itself has executed it: `memory:` has it in memory, `file:` has synced it to the disk, the Redis server has
    /// it. The default; as text `local`.
    #[default]
    Local,
    /// When `file:` has synced it to the disk, as under [`Local`](Self::Local). Other stores refuse it at start: they cannot promise it. As
    /// text `sync`.
    Sync,
    /// When `file:` has it in memory. It is written and synced at this interval: a crash of the machine loses what was confirmed
    /// within that time, a crash of the process what was confirmed since the last write. As text `interval:50ms`.
    Interval(Duration),
    /// When that many replicas of a Redis server have it too; as text `wait(1, 500ms)`.
    ///
    /// If the replicas do not confirm it in time, dq repeats the request for up to `call_deadline`. Then the call fails as
    /// *unknown*, with [`StoreError::NotReplicated`](super::StoreError::NotReplicated).
    Wait {
        /// How many replicas must confirm, 1 to 100.
        replicas: u32,
        /// How long they may take for one request, 1 ms to half of `call_timeout`.
        timeout: Duration,
    },
}
