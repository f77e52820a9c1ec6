//! Takes what steps change, and confirms it once it is on the disk.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use foldhash::fast::FixedState;

use super::bell::Bell;
use super::fences::Fences;
use super::journal::{Journal, JournalError, Position, TopicNumber};
use super::options::{Commits, FileOptions};
use super::progress::Progress;
use crate::job::{Fence, TopicKey};
use crate::store::memory::Sink;
use crate::store::{Durability, Pending, StoreError};

/// The kind of all frames: changes of a topic.
pub(super) const CHANGES: u8 = 1;

/// The sink of all topics of a store.
#[derive(Debug)]
pub(super) struct JournalSink {
    /// Set once the journal was read.
    journal: OnceLock<Arc<Journal>>,
    topics: RwLock<HashMap<TopicKey, TopicNumber, FixedState>>,
    fences: Fences,
    pub(super) progress: Arc<Progress>,
    pub(super) bell: Bell,
    pub(super) durability: Durability,
    pub(super) commits: Commits,
    /// With more bytes than this not yet written, the store takes no further steps until some are.
    most_unwritten: u64,
}

impl JournalSink {
    pub(super) fn new(options: &FileOptions) -> Self {
        Self {
            journal: OnceLock::new(),
            topics: RwLock::default(),
            fences: Fences::default(),
            progress: Arc::new(Progress::new()),
            bell: Bell::default(),
            durability: options.durability,
            commits: options.commits,
            most_unwritten: options.unwritten_bytes,
        }
    }

    /// The journal was read; steps may come.
    pub(super) fn start(&self, journal: Arc<Journal>) {
        self.progress.reached(journal.synced());
        _ = self.journal.set(journal);
    }

    pub(super) fn journal(&self) -> &Arc<Journal> {
        self.journal.get().expect("a store is used only after it was opened")
    }

    /// The number of a topic in the journal.
    pub(super) fn number(&self, topic: &TopicKey) -> Result<TopicNumber, JournalError> {
        if let Some(number) = self.topics.read().unwrap_or_else(PoisonError::into_inner).get(topic) {
            return Ok(*number);
        }
        let number = self.journal().topic(&topic.to_string())?;
        self.topics.write().unwrap_or_else(PoisonError::into_inner).insert(topic.clone(), number);
        Ok(number)
    }

    /// Writes and syncs everything that was appended before this call.
    ///
    /// # Errors
    /// [`StoreError::Full`] while the disk is full, and [`StoreError::Halted`].
    pub(super) fn commit(&self) -> Result<(), StoreError> {
        match self.journal().commit() {
            Ok(synced) => {
                self.progress.reached(synced);
                Ok(())
            }
            Err(error) => {
                self.progress.failed(&error);
                self.progress.admit("commit")
            }
        }
    }

    /// Closes the journal cleanly. No more steps come, so the newest fence is known, and the next process need not begin far above it.
    pub(super) fn close(&self, fence: Option<Fence>) {
        let journal = self.journal();
        let closed = fence.map_or(Ok(()), |fence| journal.reserve(fence.0).map(drop)).and_then(|()| journal.seal());
        if let Err(error) = closed {
            tracing::warn!(%error, "the journal could not be closed cleanly; nothing that was confirmed is lost");
        }
    }

    fn try_append(&self, topic: &TopicKey, changes: &[u8], fence: Fence) -> Result<Position, JournalError> {
        let journal = self.journal();
        // Before the changes: whoever reads them must know the reservation.
        self.fences.provide(fence, |upto| journal.reserve(upto))?;
        journal.append(self.number(topic)?, CHANGES, changes)
    }

    fn wait(&self, operation: &'static str, position: Position) -> Option<Pending<()>> {
        if self.commits == Commits::AtOnce {
            return Some(Box::pin(std::future::ready(self.commit().map_err(|error| unknown(operation, &error)))));
        }
        let progress = Arc::clone(&self.progress);
        Some(Box::pin(async move { progress.wait(operation, position).await }))
    }
}

/// The step was done, and nobody knows whether the disk has it.
fn unknown(operation: &'static str, error: &StoreError) -> StoreError {
    StoreError::Unavailable { operation, reason: error.to_string() }
}

impl Sink for JournalSink {
    fn admit(&self, operation: &'static str) -> Result<(), StoreError> {
        if let Err(StoreError::Full { .. }) = self.progress.admit(operation)
            && self.commits == Commits::AtOnce
        {
            // No thread tries again until there is room.
            self.commit()?;
        }
        self.progress.admit(operation)?;
        let journal = self.journal();
        let unwritten = journal.appended().map_or(0, |appended| appended.0.saturating_sub(journal.synced().0));
        if unwritten > self.most_unwritten {
            let reason = format!("{unwritten} bytes wait for the disk, which is slower than what comes");
            return Err(StoreError::Refused { operation, reason });
        }
        Ok(())
    }

    fn append(&self, topic: &TopicKey, changes: &[u8], fence: Fence) -> Position {
        match self.try_append(topic, changes, fence) {
            Ok(position) => {
                self.bell.ring();
                position
            }
            Err(error) => {
                self.progress.failed(&error);
                Position(u64::MAX)
            }
        }
    }

    fn note_memory(&self, bytes: u64) {
        self.journal().note_memory(bytes);
    }

    fn confirm(&self, operation: &'static str, position: Position) -> Option<Pending<()>> {
        let is_awaited = !matches!(self.durability, Durability::Interval(_));
        if is_awaited && self.journal().synced() < position { self.wait(operation, position) } else { None }
    }

    fn confirm_fence(&self, operation: &'static str, fence: Fence) -> Option<Pending<()>> {
        let position = self.fences.needs(fence, self.journal().synced())?;
        self.bell.hurry();
        self.wait(operation, position)
    }
}
