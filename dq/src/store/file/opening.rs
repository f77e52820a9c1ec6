//! Reads a directory and starts what writes to it.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::disk::Disk;
use super::journal::{Fault, Holder, Journal, OpenError, Options, Recovered};
use super::loader::{Loader, reserved};
use super::opened::Opened;
use super::options::{Commits, FileOptions};
use super::parts::{may_need, need};
use super::sink::JournalSink;
use super::snapshots::Snapshots;
use crate::environment::{Seeded, host_name, start_thread};
use crate::store::memory::{MemoryStore, ReplayPart, Sink};
use crate::store::{Durability, Store, StoreError};
use crate::telemetry::{gauge, table};
use crate::time::Timestamp;

/// Reading that takes longer than this is worth a line in the log.
const SLOW: Duration = Duration::from_secs(2);

/// How long a full disk is left alone.
const FULL_PAUSE: Duration = Duration::from_millis(500);

/// The store does not open.
pub(super) fn halted(reason: &dyn fmt::Display) -> StoreError {
    StoreError::Halted { operation: "open", reason: reason.to_string() }
}

/// The journal does not open.
pub(super) fn not_opened(error: &OpenError) -> StoreError {
    match error {
        OpenError::Held { path, holder } => StoreError::Held { path: path.clone(), holder: holder.to_string() },
        error => halted(error),
    }
}

/// Reads files on a thread of its own, because that blocks.
pub(super) async fn on_own_thread<T: Send + 'static>(
    name: &str,
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (sender, receiver) = oneshot::channel();
    start_thread(name, move || drop(sender.send(read()))).map_err(|error| halted(&error))?;
    receiver.await.map_err(|_| halted(&"reading it panicked, which is a defect of dq"))?
}

/// A random number of this process.
pub(super) fn this_process() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| Seeded::by_system().next())
}

/// Opens the journal of a disk and loads what it has.
pub(super) fn open(disk: &Arc<dyn Disk>, options: &FileOptions) -> Result<Opened, StoreError> {
    try_open(disk, options).map_err(|error| not_opened(&error))
}

/// As [`open`], with the error of the journal.
pub(super) fn try_open(disk: &Arc<dyn Disk>, options: &FileOptions) -> Result<Opened, OpenError> {
    let began = options.clock.micros();
    let path = disk.path();
    let sink = Arc::new(JournalSink::new(options));
    let memory = MemoryStore::journaled(Arc::clone(&options.clock), Arc::clone(&sink) as Arc<dyn Sink>);
    if let Some(limit) = options.max_memory {
        memory.limit_memory(limit);
    }
    let (journal, recovered) = load(disk, options, &memory)?;
    memory.raise_fence(reserved(&path, recovered.reserved)).map_err(|error| OpenError::Refused {
        file: path.clone(),
        offset: 0,
        source: error.into(),
    })?;
    let took = Duration::from_micros(options.clock.micros().saturating_sub(began));
    report(&path, &recovered, took);
    journal.note_memory(memory.memory_use().unwrap_or_default().bytes);
    let journal = Arc::new(journal);
    sink.start(Arc::clone(&journal));
    let snapshots = Snapshots::new(memory.clone(), Arc::clone(&sink), options.snapshot_bytes);
    snapshots.take_at_start(&recovered);
    let thread = start_commits(&sink, snapshots.clone());
    let thread = thread.map_err(|source| Fault { file: path, doing: "start a thread for", source })?;
    Ok(Opened::new(memory, sink, snapshots, thread))
}

/// Opens the journal and loads what it has, if that may take so much memory. Outcomes and ticks are never refused, so the jobs may have
/// taken more than the limit: a start allows an eighth more.
fn load(disk: &Arc<dyn Disk>, options: &FileOptions, memory: &MemoryStore) -> Result<(Journal, Recovered), OpenError> {
    let limit = options.max_memory.unwrap_or(u64::MAX);
    let most = limit.saturating_add(limit / 8);
    let too_large = |need: u64| OpenError::TooLarge { path: disk.path(), need: need >> 20, limit: limit >> 20 };
    let find_need = || need(&**disk).unwrap_or(most).max(most);
    // If the files cannot be read, the opening says why.
    if may_need(&**disk, most)
        && let Ok(Some(noted)) = Journal::noted_memory(&**disk)
        && noted > most
    {
        return Err(too_large(noted));
    }
    if Journal::snapshot_bytes(&**disk)? > most {
        return Err(too_large(find_need()));
    }
    let mut loader = Loader::new(memory, ReplayPart::WHOLE).up_to(most);
    let options = journal_options(options);
    match Journal::open(Arc::clone(disk), &options, |_, frame| loader.load(&frame)) {
        Err(OpenError::Refused { .. }) if loader.is_over() => {
            memory.forget();
            Err(too_large(find_need()))
        }
        opened => opened,
    }
}

/// What the journal of a store is opened with.
pub(super) fn journal_options(options: &FileOptions) -> Options {
    let since = Some(Timestamp::from_millis(options.clock.micros() / 1_000));
    let holder =
        Holder { pid: Some(std::process::id()), host: Some(host_name()), process: Some(this_process()), since };
    let defaults = Options::new(Seeded::by_system().next(), holder);
    Options {
        segment_bytes: options.segment_bytes,
        // A small file needs no more room than it may fill.
        ahead_bytes: defaults.ahead_bytes.min(options.segment_bytes),
        ..defaults
    }
}

/// Starts the thread that writes and syncs the journal, if the store has one.
fn start_commits(sink: &Arc<JournalSink>, snapshots: Snapshots) -> io::Result<Option<JoinHandle<()>>> {
    if sink.commits != Commits::OnOwnThread {
        return Ok(None);
    }
    let sink = Arc::clone(sink);
    start_thread("dq-file", move || commit_all(&sink, &snapshots)).map(Some)
}

/// Writes and syncs the journal until the store closes. Whoever comes during a sync shares the next one.
fn commit_all(sink: &JournalSink, snapshots: &Snapshots) {
    let [used, limit] = [&table::MEMORY, &table::MEMORY_LIMIT].map(|metric| gauge(metric, &[]));
    loop {
        if let Some(memory) = snapshots.memory_use() {
            used.set(memory.bytes as f64);
            limit.set(memory.limit.unwrap_or_default() as f64);
        }
        sink.bell.wait();
        if sink.bell.is_closing() {
            return;
        }
        if let Durability::Interval(interval) = sink.durability {
            sink.bell.pause(interval);
        }
        while let Err(StoreError::Full { .. }) = sink.commit() {
            sink.bell.pause(FULL_PAUSE);
            if sink.bell.is_closing() {
                return;
            }
        }
        snapshots.take_if_due();
    }
}

fn report(path: &str, recovered: &Recovered, took: Duration) {
    if let Some(torn) = &recovered.torn {
        tracing::warn!(
            file = torn.file,
            offset = torn.offset,
            bytes = torn.bytes,
            "the end of the journal was half-written when the program or the machine stopped; it was never confirmed and is cut off"
        );
    }
    let (frames, is_new, is_sealed) = (recovered.frames, recovered.is_new, recovered.is_sealed);
    if took > SLOW {
        tracing::info!(path, frames, ?took, "the store is open");
    } else {
        tracing::debug!(path, frames, ?took, is_new, is_sealed, "the store is open");
    }
}
