//! What the `Ok` of an add or a withdrawal promises beside that the store has done it.

use std::time::Duration;

/// When a store answers what callers ask of it: adds, deletes, cancels, acks and requeues from outside.
///
/// What nodes say of jobs they run is never waited for: where a failover undoes it, the job runs again, which *at least
/// once* allows. `docs/guide/deploying-on-redis.md` has what a failover can undo, and what not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When the store itself has done it. Default; as text `local`.
    #[default]
    Local,
    /// When that many replicas of a Redis server have it too; as text `wait(1, 500ms)`.
    ///
    /// A caller whose change they did not confirm in time is told [`StoreError::NotReplicated`](super::StoreError::NotReplicated)
    /// as unknown, after repeats until `call_total`.
    Wait {
        /// How many replicas, 1 to 100.
        replicas: u32,
        /// How long they may take for one request, 1 ms to half of `call_timeout`.
        timeout: Duration,
    },
}
