//! Fills a new directory with imports, which are on the disk and nowhere else: so an import needs little memory.

use std::future::ready;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use super::disk::Disk;
use super::journal::{Frame, Journal};
use super::known::{Known, Print};
use super::opened::Connection;
use super::opening::journal_options;
use super::options::{Commits, FileOptions};
use super::reading::{CheckError, directory};
use super::sink::JournalSink;
use crate::environment::{StoreClock, WallClock};
use crate::job::{Fence, NodeId, ProducerId, State, TopicKey};
use crate::store::memory::{MemoryStore, Sink};
use crate::store::{
    Batch, BatchAnswer, BatchReply, ImportOutcome, Interest, JobCopy, Link, LinkOptions, Pending, Producer, Query,
    QueryReply, Signals, Store, StoreError,
};
use crate::time::Timestamp;

/// A new directory that takes imports and nothing else. Of the jobs that it has it knows only the places, in 16 to 32 bytes of memory each.
/// Dropping it closes the directory.
#[derive(Debug)]
pub struct NewDirectory(Arc<Filling>);

#[derive(Debug)]
struct Filling {
    path: String,
    sink: Arc<JournalSink>,
    /// The highest fence that an import named.
    fence: AtomicU64,
    /// What all jobs so far will take in memory.
    memory: AtomicU64,
    known: Mutex<Known>,
}

impl NewDirectory {
    /// Makes the directory, or takes one that has no store yet; `None` if it has one. Blocks.
    ///
    /// # Errors
    /// [`CheckError`]: the disk refuses, or another process uses the directory.
    pub fn at(path: impl AsRef<Path>) -> Result<Option<Self>, CheckError> {
        let disk = directory(path.as_ref())?;
        Self::on(disk)
    }

    /// As [`at`](Self::at), on a disk that the program made.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn on(disk: Arc<dyn Disk>) -> Result<Option<Self>, CheckError> {
        if !Journal::is_missing(&*disk)? {
            return Ok(None);
        }
        let mut options = FileOptions::new(Arc::new(WallClock));
        options.commits = Commits::AtOnce;
        let (path, sink) = (disk.path(), Arc::new(JournalSink::new(&options)));
        let nothing = |_, _: Frame<'_>| Ok::<_, std::io::Error>(());
        let (journal, _) = Journal::open(disk, &journal_options(&options), nothing)?;
        sink.start(Arc::new(journal));
        Ok(Some(Self(Arc::new(Filling {
            path,
            sink,
            fence: AtomicU64::new(0),
            memory: AtomicU64::new(0),
            known: Mutex::new(Known::new()),
        }))))
    }

    fn refused(&self, operation: &'static str) -> StoreError {
        let reason = format!("{} is being filled by an import", self.0.path);
        StoreError::Unsupported { operation, reason }
    }
}

impl Filling {
    /// A print and its place are put together, so a panic of another thread has left nothing half-done.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the copies that a batch has put.
    fn note(&self, prints: Vec<(Print, State)>, outcomes: &[ImportOutcome]) {
        let mut known = self.known();
        for ((print, state), outcome) in prints.into_iter().zip(outcomes) {
            if matches!(outcome, ImportOutcome::Added | ImportOutcome::Replaced(_)) {
                known.put(print, state);
            }
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.sink.close(Some(Fence(self.fence.load(Ordering::Relaxed))));
    }
}

impl Store for NewDirectory {
    fn url(&self) -> String {
        format!("file:{}", self.0.path)
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        Box::pin(ready(match query {
            Query::Open { .. } => Ok(QueryReply::Open(())),
            Query::Contact {} => Ok(QueryReply::Contact(Timestamp::floor_micros(WallClock.micros()))),
            query => Err(self.refused(query.name())),
        }))
    }

    fn link_with(&self, _: &TopicKey, _: &NodeId, _: LinkOptions) -> Arc<dyn Link> {
        Arc::new(Connection::<dyn Link>(None))
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        Arc::new(Importer { to: Arc::clone(&self.0), topic: topic.clone(), producer: producer.clone() })
    }

    fn signals<'a>(&'a self, _: &'a TopicKey, _: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(ready(Err(self.refused("signals"))))
    }
}

/// The imports of one topic.
#[derive(Debug)]
struct Importer {
    to: Arc<Filling>,
    topic: TopicKey,
    producer: ProducerId,
}

impl Producer for Importer {
    fn ask(&self, batch: Batch) -> Pending<BatchReply> {
        // Its changes go to the journal, and the rest of it goes with the batch.
        let memory = MemoryStore::journaled(Arc::new(WallClock), Arc::clone(&self.to.sink) as Arc<dyn Sink>);
        let producer = memory.producer(&self.topic, &self.producer);
        let Batch::Import { import, .. } = &batch else { return producer.ask(batch) };
        self.to.fence.fetch_max(import.fence.0, Ordering::Relaxed);
        let prints = match self.put_known(&memory, &import.copies) {
            Ok(prints) => prints,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let used = |memory: &MemoryStore| memory.memory_use().unwrap_or_default().bytes;
        let known = used(&memory);
        memory.count_others(self.to.memory.load(Ordering::Relaxed));
        let answer = producer.ask(batch);
        self.to.memory.store(used(&memory) - known, Ordering::Relaxed);
        let to = Arc::clone(&self.to);
        Box::pin(async move {
            let answer = answer.await?;
            if let BatchReply::Import(BatchAnswer::Done(outcomes)) = &answer {
                to.note(prints, outcomes);
            }
            Ok(answer)
        })
    }
}

impl Importer {
    /// Puts the places of those of these copies that are there already into the store of a batch. Returns what stands for each copy.
    fn put_known(&self, memory: &MemoryStore, copies: &[JobCopy]) -> Result<Vec<(Print, State)>, StoreError> {
        let known = self.to.known();
        let prints: Vec<_> = copies.iter().map(|copy| (known.print(&self.topic, copy), copy.state)).collect();
        let known_state = |(copy, (print, _)): (&JobCopy, &(Print, State))| {
            Some((copy.is_broadcast, known.state(print)?, copy.id.clone()))
        };
        memory.put_places(&self.topic, copies.iter().zip(&prints).filter_map(known_state).collect())?;
        Ok(prints)
    }
}
