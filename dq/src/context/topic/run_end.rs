//! How a handler ended, as its topic is told.

use tokio::sync::mpsc;

use super::runs::RunId;
use crate::listener::erased::Returned;

/// How a handler ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// It returned.
    Returned(Returned),
    /// It panicked with this message.
    Panicked(String),
    /// Its future was dropped: it was given up, or its runtime is shutting down.
    Dropped,
}

/// A handler has ended.
#[derive(Debug)]
pub(super) struct RunEnd {
    pub(super) run: RunId,
    pub(super) ended: Ended,
}

/// Tells the end of a run in any case, also when its future is dropped.
pub(super) struct TellEnd {
    pub(super) run: RunId,
    pub(super) ended: Ended,
    pub(super) ends: mpsc::UnboundedSender<RunEnd>,
}

impl TellEnd {
    pub(super) fn end(mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for TellEnd {
    fn drop(&mut self) {
        let ended = std::mem::replace(&mut self.ended, Ended::Dropped);
        // The topic may be gone: then nobody is left to tell.
        let _ = self.ends.send(RunEnd { run: self.run, ended });
    }
}
