//! A directory that is open, and the links and producers that keep it open.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::options::Commits;
use super::sink::JournalSink;
use super::snapshots::Snapshots;
use crate::store::memory::{MemoryStore, Sink};
use crate::store::{Answer, Batch, BatchReply, Link, Pending, Producer, Request, StoreError};

/// A directory that is open. Dropping it closes it cleanly: everything is synced, the journal says that it ended, and the lock is
/// free.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) memory: MemoryStore,
    sink: Arc<JournalSink>,
    pub(super) snapshots: Snapshots,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Opened {
    pub(super) fn new(
        memory: MemoryStore,
        sink: Arc<JournalSink>,
        snapshots: Snapshots,
        thread: Option<JoinHandle<()>>,
    ) -> Self {
        Self { memory, sink, snapshots, thread: Mutex::new(thread) }
    }

    /// Refuses while the store takes no steps.
    pub(super) fn admit(&self, operation: &'static str) -> Result<(), StoreError> {
        self.sink.admit(operation)
    }

    pub(super) fn commit(&self) -> Result<(), StoreError> {
        self.sink.commit()?;
        if self.sink.commits == Commits::ByHand {
            self.snapshots.take_now_if_due();
        }
        Ok(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.sink.bell.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            tracing::error!("the thread that writes the journal panicked, which is a defect of dq");
        }
        self.snapshots.stop();
        // By hand, what was not committed is lost, as in a crash: the simulation decides what is.
        if self.sink.commits != Commits::ByHand {
            self.sink.close(self.memory.highest_fence().ok());
        }
        self.sink.progress.ends("the store was closed");
    }
}

/// A link or producer, which keeps the directory open. `None`: it was made before the store was opened.
#[derive(Debug)]
pub(super) struct Connection<C: ?Sized>(pub(super) Option<(Arc<C>, Arc<Opened>)>);

impl Link for Connection<dyn Link> {
    fn ask(&self, request: Request) -> Pending<Answer> {
        match &self.0 {
            Some((link, _)) => link.ask(request),
            None => refuse(request.kind().name()),
        }
    }
}

impl Producer for Connection<dyn Producer> {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        match &self.0 {
            Some((producer, _)) => producer.ask(batch),
            None => refuse(batch.name()),
        }
    }
}

fn refuse<T: Send + 'static>(operation: &'static str) -> Pending<T> {
    let reason = "this connection was made before the store was opened".to_owned();
    Box::pin(ready(Err(StoreError::Halted { operation, reason })))
}
