//! Runs: the handlers of a topic, from the start of a run to its end.
//!
//! 1. [`start_held`](Runs::start_held) chooses the handler that a job needs and makes its run ([`listener`]); [`isolation`] decides when a
//!    job may start that may have killed its process.
//! 2. [`hand_over`](Runs::hand_over) puts all new runs into the queue of the runners on the user's runtime (`run/runners.rs`).
//! 3. A runner takes the run: it begins, and its timeout counts. If that takes too long although permits are free, its job goes
//!    back.
//! 4. The run ends, or its timeout passes first ([`timeouts`]): a [`RunEnd`](super::run::RunEnd) tells the outcomes.
//! 5. A stop, a command, a pause or a lost lease takes runs back ([`rollback`]).
//!
//! The fields are private to this folder. The jobs are in the [`moment`](super::moment), which all owners borrow.

mod isolation;
mod listener;
mod rollback;
mod table;
mod timeouts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Parts;
use super::held::Held;
use super::run::{PreparedRun, Runners, Tasks};
use crate::context::condition::Warned;
use crate::job::JobId;
use crate::listener::ErasedBatches;
use isolation::Isolations;
use table::Table;

pub(super) use listener::Room;

/// For how long a quarantined job waits for a handler, or is alone: two timeouts, or ten minutes without one.
fn longest_wait(timeout: Option<Duration>) -> Duration {
    timeout.map_or(Duration::from_secs(600), |timeout| timeout * 2)
}

/// The runs of a topic, and what decides when they start and end.
pub(super) struct Runs {
    parts: Arc<Parts>,
    table: Table,
    runners: Runners,
    /// Runs that the runners have not got yet.
    starting: Vec<PreparedRun>,
    /// Tasks beside the runners that the user's runtime has not got yet: they ask `retry_delay`, make payloads, or end runs that were taken
    /// back.
    asking: Vec<BoxFuture<'static, ()>>,
    /// What the tasks of all runs share.
    tasks: Arc<Tasks>,
    /// The listener, if it takes batches.
    batches: Option<Arc<dyn ErasedBatches>>,
    isolations: Isolations,
    /// Running jobs for which a signal tells of a cancel, and whether the store was asked whether there is one.
    cancels: BTreeMap<JobId, bool>,
    /// Since when runs starve, if they do.
    starving_since: Option<Duration>,
    /// The runtime of the handlers has shut down: nothing can start any more.
    handlers_gone: bool,
    /// Handlers blocked their threads.
    blocked: Warned,
    /// Processes died.
    crashed: Warned,
}

impl Runs {
    pub(super) fn new(parts: Arc<Parts>, tasks: Tasks) -> Self {
        Self {
            table: Table::default(),
            runners: Runners::new(parts.environment.clone()),
            starting: Vec::new(),
            asking: Vec::new(),
            tasks: Arc::new(tasks),
            batches: parts.listener.clone().batches(),
            isolations: Isolations::default(),
            cancels: BTreeMap::new(),
            starving_since: None,
            handlers_gone: false,
            blocked: Warned::default(),
            crashed: Warned::default(),
            parts,
        }
    }

    /// Whether the runtime of the handlers has shut down.
    pub(super) const fn are_over(&self) -> bool {
        self.handlers_gone
    }

    /// Runs that have a permit or wait for one in the queue of the runners. A batch has one, whatever becomes of its jobs.
    pub(super) fn handed_over(&self, held: &Held) -> usize {
        let ((batches, batched), jobs) = (self.table.batches(), held.counts());
        jobs.needing_permits() - jobs.waiting - batched + batches + self.table.without_job()
    }

    /// The runs.
    pub(super) const fn table(&self) -> &Table {
        &self.table
    }

    /// How many handlers have returned. It tells only whether one has since.
    pub(super) fn returned(&self) -> usize {
        self.runners.returned()
    }

    /// How many runs wait for a runner.
    pub(super) fn queued(&self) -> usize {
        self.runners.queued()
    }
}
