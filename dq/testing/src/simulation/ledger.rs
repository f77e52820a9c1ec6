//! The ledger of follow-ups: what was written and what has come; and of job sets (rule 18).

use std::collections::BTreeSet;

use super::set_ledger::SetLedger;
use dq::job::JobId;

/// What was written, and what has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub(super) written: BTreeSet<JobId>,
    pub(super) come: BTreeSet<JobId>,
    /// How many entries the target was sent, and whether an import has left it a position that is ahead: from then on some may come twice.
    pub(super) sent: u64,
    pub(super) imported: bool,
    /// Without `outbox`: the positions that moved before their jobs came.
    pub(super) moved: BTreeSet<u64>,
    pub(super) sets: SetLedger,
}
