//! Crash: what keeps every job safe when a node or its connection fails.
//!
//! * [`lease`]: until when no other node takes the jobs of this one.
//! * [`reconcile`]: what this node holds against the rows that the store counts for it.
//! * [`reclaim`]: the jobs of dead nodes go back.
//! * [`rollback`]: the jobs that this node did not run go back.
//! * [`audit`]: the jobs whose place another program removed go back.
//!
//! `Lease`, `Reconciliation`, `Reclaims` and `Audits` are the state of each. The rest of the topic asks whether the lease is good and
//! whether both sides agree, and passes on what answers say; only this folder sends `renew`, `reconcile`, `scan`, `reclaim`,
//! `audit` and `recover`.

mod audit;
mod lease;
mod reclaim;
mod reconcile;
mod rollback;

pub(super) use audit::Audits;
pub(super) use lease::{Lease, LeaseEnd};
pub(super) use reclaim::Reclaims;
pub(super) use reconcile::Reconciliation;
