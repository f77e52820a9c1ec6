//! Handlers that run, and those that were given up but have not returned.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::job::{JobId, Token};
use crate::listener::erased::Call;

/// The number of a run within its topic's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunId(u64);

/// A handler that runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: JobId,
    pub(super) token: Token,
    pub(super) call: Call,
    pub(super) started: Duration,
    /// When it times out; `None`: never. Not earlier than that of any run before it.
    pub(super) deadline: Option<Duration>,
    /// It was begun: one crash short of its cap, so it runs alone.
    pub(super) quarantined: bool,
    /// It was acked on claim: its end settles nothing.
    pub(super) detached: bool,
    pub(super) cancel: CancellationToken,
    pub(super) abort: AbortHandle,
}

/// Whether some handlers forbid others to start beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// There is a handler.
    pub(super) any: bool,
    /// There is a begun one.
    pub(super) quarantined: bool,
}

/// A handler that was cancelled or timed out and has not returned: it still has its permit, and its outcome is refused.
#[derive(Debug)]
struct Abandoned {
    id: JobId,
    quarantined: bool,
    counts_until: Duration,
}

/// See the module. All runs of a topic have one timeout, so the first is the first to time out.
#[derive(Debug, Default)]
pub(super) struct Runs {
    last: u64,
    running: BTreeMap<RunId, Run>,
    abandoned: BTreeMap<RunId, Abandoned>,
    detached: usize,
    quarantined: usize,
}

impl Runs {
    /// The number of the next run.
    pub(super) const fn next_id(&mut self) -> RunId {
        self.last += 1;
        RunId(self.last)
    }

    pub(super) fn insert(&mut self, run_id: RunId, run: Run) {
        self.detached += usize::from(run.detached);
        self.quarantined += usize::from(run.quarantined);
        self.running.insert(run_id, run);
    }

    /// The run has returned.
    pub(super) fn remove(&mut self, run_id: RunId) -> Option<Run> {
        let run = self.running.remove(&run_id)?;
        self.detached -= usize::from(run.detached);
        self.quarantined -= usize::from(run.quarantined);
        Some(run)
    }

    /// The token of the run fires; the rest is its handler's.
    pub(super) fn ask_to_stop(&self, run_id: RunId) {
        if let Some(run) = self.running.get(&run_id) {
            run.cancel.cancel();
        }
    }

    /// The run is given up: its token fires and its future is dropped at its next `await`. Until it returns it keeps its
    /// permit. `timeout` bounds how long it counts as running beside others.
    pub(super) fn give_up(&mut self, run_id: RunId, timeout: Option<Duration>) -> Option<Run> {
        let run = self.remove(run_id)?;
        run.cancel.cancel();
        run.abort.abort();
        let counts_until = run.started + longest_count(timeout);
        self.quarantined += usize::from(run.quarantined);
        self.abandoned.insert(run_id, Abandoned { id: run.id.clone(), quarantined: run.quarantined, counts_until });
        Some(run)
    }

    /// A handler that was given up has returned at last: its job.
    pub(super) fn abandoned_returned(&mut self, run_id: RunId) -> Option<JobId> {
        let abandoned = self.abandoned.remove(&run_id)?;
        self.quarantined -= usize::from(abandoned.quarantined);
        Some(abandoned.id)
    }

    /// Handlers that have a permit.
    pub(super) fn active(&self) -> usize {
        self.running.len() + self.abandoned.len()
    }

    /// Handlers that have a permit but no held job.
    pub(super) fn without_job(&self) -> usize {
        self.abandoned.len() + self.detached
    }

    /// Handlers that have a permit and a held job.
    pub(super) fn with_job(&self) -> usize {
        self.running.len() - self.detached
    }

    /// Handlers that run and were not given up.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// The first timeout.
    pub(super) fn first_deadline(&self) -> Option<(RunId, Duration)> {
        self.running.first_key_value().and_then(|(run_id, run)| Some((*run_id, run.deadline?)))
    }

    /// All runs that were not given up, in order of their start.
    pub(super) fn all(&self) -> Vec<RunId> {
        self.running.keys().copied().collect()
    }

    /// Whether there is a begun one, given up or not.
    pub(super) const fn has_quarantined(&self) -> bool {
        self.quarantined > 0
    }

    /// What runs now, as far as it counts: a handler counts until it returns, for two timeouts at most.
    pub(super) fn counted(&self, now: Duration, timeout: Option<Duration>) -> Counted {
        let most = longest_count(timeout);
        let runs = self.running.values().map(|run| (run.started + most, run.quarantined));
        let abandoned = self.abandoned.values().map(|abandoned| (abandoned.counts_until, abandoned.quarantined));
        runs.chain(abandoned).filter(|(until, _)| now < *until).fold(
            Counted { any: false, quarantined: false },
            |counted, (_, quarantined)| Counted { any: true, quarantined: counted.quarantined || quarantined },
        )
    }

    /// When the next handler stops to count.
    pub(super) fn next_uncounted(&self, now: Duration, timeout: Option<Duration>) -> Option<Duration> {
        let most = longest_count(timeout);
        let runs = self.running.values().map(|run| run.started + most);
        runs.chain(self.abandoned.values().map(|abandoned| abandoned.counts_until)).filter(|until| *until > now).min()
    }
}

/// For how long a handler, or a begun job, counts as running beside others: two timeouts, ten minutes where there is none.
pub(super) fn longest_count(timeout: Option<Duration>) -> Duration {
    timeout.map_or(Duration::from_secs(600), |timeout| timeout * 2)
}

impl Drop for Runs {
    /// Whoever drops the topic (a node that was stopped hard, a task that panicked) wants none of its handlers any more.
    fn drop(&mut self) {
        for run in self.running.values() {
            run.cancel.cancel();
            run.abort.abort();
        }
    }
}
