//! Replaces old parts of the journal by a snapshot, page by page beside the steps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::journal::{Growth, Recovered, SnapshotError, SnapshotWriter, Taken, TopicNumber};
use super::sink::{CHANGES, JournalSink};
use crate::environment::start_thread;
use crate::job::TopicKey;
use crate::store::memory::{MemoryStore, PageSize};
use crate::store::{MemoryUse, Store};

/// What is copied under the lock of a topic at a time: well below a millisecond.
const PAGE: PageSize = PageSize { rows: 256, bytes: 128 << 10 };

/// A snapshot is due once the frames of the journal have grown, or once what fills its units up has grown by this many times that.
/// So single adds, each alone in a unit, take as many snapshots as with units of 512 bytes.
const MAX_PADDING: u64 = 8;

/// A start that finds this many segments takes a snapshot. Each start may leave a segment that has little more than its zeros ahead,
/// which the positions of the journal do not count.
const MAX_SEGMENTS: usize = 16;

/// Takes the snapshots of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Snapshots {
    memory: MemoryStore,
    sink: Arc<JournalSink>,
    /// How far the journal may grow.
    growth: u64,
    /// After a failure: how far the journal has to grow before the next try.
    retry_from: Arc<AtomicU64>,
    running: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// Why a snapshot was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    #[error("the store closes")]
    Closing,
}

impl From<super::journal::JournalError> for Failed {
    fn from(error: super::journal::JournalError) -> Self {
        Self::Snapshot(error.into())
    }
}

impl Snapshots {
    pub(super) fn new(memory: MemoryStore, sink: Arc<JournalSink>, growth: u64) -> Self {
        Self { memory, sink, growth, retry_from: Arc::default(), running: Arc::default() }
    }

    /// What the jobs take in memory.
    pub(super) fn memory_use(&self) -> Option<MemoryUse> {
        self.memory.memory_use()
    }

    /// Starts a snapshot if the journal has grown enough since the last one and none is being taken. Returns at once.
    pub(super) fn take_if_due(&self) {
        if !self.is_due() {
            return;
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let snapshots = self.clone();
        match start_thread("dq-snapshot", move || snapshots.take_and_log()) {
            Ok(thread) => *running = Some(thread),
            Err(error) => tracing::info!(%error, "no thread for a snapshot; the next commit tries again"),
        }
    }

    /// As [`take_if_due`](Self::take_if_due), on this thread.
    pub(super) fn take_now_if_due(&self) {
        if self.is_due() {
            self.take_and_log();
        }
    }

    /// Takes a snapshot on this thread if the starts before this one have left many segments, and these are as large as the snapshot: so
    /// it costs no more than they did. It is done before the program goes on,
    /// because that may die at once, again and again.
    pub(super) fn take_at_start(&self, recovered: &Recovered) {
        let (segments, bytes) = recovered.segments;
        let is_large = |growth: Growth| bytes >= growth.snapshot;
        let are_many = segments >= MAX_SEGMENTS && self.sink.journal().growth().is_ok_and(is_large);
        if are_many {
            self.take_and_log();
        }
    }

    fn is_due(&self) -> bool {
        let retry_from = self.retry_from.load(Ordering::Relaxed);
        let is_due = |growth: Growth| {
            // A tiny one would follow another without an end, and a large one costs no more than what it replaces.
            let most = |bytes: u64| if self.growth == 0 { 1 } else { bytes.max(growth.snapshot) };
            let is_large =
                growth.frames >= most(self.growth) || growth.padding >= most(self.growth.saturating_mul(MAX_PADDING));
            is_large && growth.frames + growth.padding >= retry_from
        };
        self.sink.journal().growth().is_ok_and(is_due)
    }

    /// Waits for the end of a snapshot that is being taken; it gives up once the store closes.
    pub(super) fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(_)) = running.map(JoinHandle::join) {
            tracing::error!("the thread that takes snapshots panicked, which is a defect of dq");
        }
    }

    fn take_and_log(&self) {
        match self.take() {
            Ok(taken) => {
                self.retry_from.store(0, Ordering::Relaxed);
                tracing::debug!(bytes = taken.bytes, files_removed = taken.removed, "took a snapshot");
            }
            Err(Failed::Closing) => {}
            Err(error) => {
                self.try_later();
                tracing::warn!(%error, "the snapshot failed; the journal is whole and grows until one succeeds");
            }
        }
    }

    /// A try after each commit would take the room on the disk again and again, and the journal needs it.
    fn try_later(&self) {
        let grown = self.sink.journal().growth().map_or(0, |growth| growth.frames + growth.padding);
        self.retry_from.store(grown.saturating_add(self.growth / 8), Ordering::Relaxed);
    }

    /// Takes a snapshot.
    pub(super) fn take(&self) -> Result<Taken, Failed> {
        let mut writer = self.sink.journal().snapshot()?;
        write_all(&self.memory, &mut writer, |topic| {
            if self.sink.bell.is_closing() { Err(Failed::Closing) } else { Ok(self.sink.number(topic)?) }
        })?;
        Ok(writer.finish()?)
    }
}

/// Writes everything that a store has into a snapshot. `number` tells the number of a topic before each page of it.
pub(super) fn write_all(
    memory: &MemoryStore,
    writer: &mut SnapshotWriter,
    number: impl Fn(&TopicKey) -> Result<TopicNumber, Failed>,
) -> Result<(), Failed> {
    for topic in memory.known_topics() {
        let written = write_topic(memory, &topic, writer, &number);
        if written.is_err() {
            // This fails only for a topic that is stopped, which logs nothing any more.
            let _ = memory.give_up_dump(&topic);
        }
        written?;
    }
    Ok(())
}

fn write_topic(
    memory: &MemoryStore,
    topic: &TopicKey,
    writer: &mut SnapshotWriter,
    number: impl Fn(&TopicKey) -> Result<TopicNumber, Failed>,
) -> Result<(), Failed> {
    let (mut cursor, mut page) = (memory.begin_dump(topic)?, Vec::new());
    loop {
        let is_last = memory.dump(topic, &mut cursor, PAGE, &mut page)?;
        let number = number(topic)?;
        if !page.is_empty() {
            writer.append(number, CHANGES, &page)?;
            page.clear();
        }
        if is_last {
            return Ok(());
        }
        // A step that waits for the lock of the topic comes first.
        thread::yield_now();
    }
}
