//! The runs of a topic: handlers that execute, and abandoned runs that have not returned.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::AbortHandle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::job::{JobId, Token};
use crate::listener::erased::Returned;

/// The number of a run within its topic's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunId(u64);

/// A run that was not given up.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: JobId,
    pub(super) token: Token,
    /// When it times out; `None`: never. Not earlier than the deadline of any run before it.
    pub(super) deadline: Option<Duration>,
    /// The job was acked on claim: the end of the run settles nothing.
    pub(super) detached: bool,
    pub(super) cancel: CancellationToken,
    pub(super) abort: AbortHandle,
}

/// How a handler ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// It returned.
    Returned(Returned),
    /// It panicked with this message.
    Panicked(String),
    /// Its future was dropped: the run was given up, or the runtime shuts down.
    Dropped,
}

/// The end of a run, as its task reports it to the topic.
#[derive(Debug)]
pub(super) struct RunEnd {
    pub(super) run: RunId,
    pub(super) ended: Ended,
}

/// Reports the end of a run in any case, also if its future is dropped.
pub(super) struct EndReport {
    run: RunId,
    ended: Ended,
    ends: mpsc::UnboundedSender<RunEnd>,
}

impl EndReport {
    pub(super) const fn new(run: RunId, ends: mpsc::UnboundedSender<RunEnd>) -> Self {
        Self { run, ended: Ended::Dropped, ends }
    }

    pub(super) fn send(mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for EndReport {
    fn drop(&mut self) {
        let ended = std::mem::replace(&mut self.ended, Ended::Dropped);
        // This fails only if the topic is gone; then the end of the run does not matter.
        let _ = self.ends.send(RunEnd { run: self.run, ended });
    }
}

/// All runs by their number. They have one timeout, so the first is the first to time out.
#[derive(Debug, Default)]
pub(super) struct Runs {
    last: u64,
    running: BTreeMap<RunId, Run>,
    /// Runs that were cancelled or timed out and have not returned, with their jobs. They keep their permits, and their
    /// outcomes are refused.
    abandoned: BTreeMap<RunId, JobId>,
    detached: usize,
}

impl Runs {
    /// The number of the next run.
    pub(super) const fn next_id(&mut self) -> RunId {
        self.last += 1;
        RunId(self.last)
    }

    pub(super) fn insert(&mut self, run_id: RunId, run: Run) {
        self.detached += usize::from(run.detached);
        self.running.insert(run_id, run);
    }

    /// Removes a run that has returned.
    pub(super) fn remove(&mut self, run_id: RunId) -> Option<Run> {
        let run = self.running.remove(&run_id)?;
        self.detached -= usize::from(run.detached);
        Some(run)
    }

    /// Fires the cancellation token of a run. Whether the handler stops is up to the handler.
    pub(super) fn ask_to_stop(&self, run_id: RunId) {
        if let Some(run) = self.running.get(&run_id) {
            run.cancel.cancel();
        }
    }

    /// Gives a run up: its token fires, and its future is dropped at its next `await`. The run keeps its permit until it
    /// returns.
    pub(super) fn give_up(&mut self, run_id: RunId) -> Option<Run> {
        let run = self.remove(run_id)?;
        run.cancel.cancel();
        run.abort.abort();
        self.abandoned.insert(run_id, run.id.clone());
        Some(run)
    }

    /// Removes an abandoned run that has returned. Returns its job.
    pub(super) fn abandoned_returned(&mut self, run_id: RunId) -> Option<JobId> {
        self.abandoned.remove(&run_id)
    }

    /// How many runs have a permit.
    pub(super) fn active(&self) -> usize {
        self.running.len() + self.abandoned.len()
    }

    /// How many runs have a permit but no held job.
    pub(super) fn without_job(&self) -> usize {
        self.abandoned.len() + self.detached
    }

    /// How many runs were not given up.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// The run that times out first, and when.
    pub(super) fn first_deadline(&self) -> Option<(RunId, Duration)> {
        self.running.first_key_value().and_then(|(run_id, run)| Some((*run_id, run.deadline?)))
    }

    /// All runs that were not given up, in order of their start.
    pub(super) fn all(&self) -> Vec<RunId> {
        self.running.keys().copied().collect()
    }
}

impl Drop for Runs {
    /// A topic is dropped when its node is killed or its task panicked. Its handlers must not outlive it.
    fn drop(&mut self) {
        for run in self.running.values() {
            run.cancel.cancel();
            run.abort.abort();
        }
    }
}
