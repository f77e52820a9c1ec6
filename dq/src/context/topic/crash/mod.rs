//! Crash: the lease of this node, what it holds against what the store thinks it holds, what dead nodes held, and giving back.

pub(super) mod lease;
pub(super) mod reclaim;
pub(super) mod reconcile;
pub(super) mod rollback;
