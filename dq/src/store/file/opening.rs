//! Reads a directory and starts what writes to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::disk::Disk;
use super::journal::{Fault, Frame, Holder, Journal, OpenError, Options, Origin, Recovered, TopicNumber};
use super::opened::Opened;
use super::options::{Commits, FileOptions};
use super::sink::{CHANGES, JournalSink};
use super::snapshots::Snapshots;
use crate::environment::{Entropy, OsEntropy, host_name, start_thread};
use crate::job::{AppName, Fence, TopicKey, TopicName};
use crate::store::memory::{CHANGES_VERSION, MemoryStore, PassedOver, Replay, Sink};
use crate::store::{Durability, StoreError};
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

/// A random number of this process.
pub(super) fn this_process() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| OsEntropy::new().next())
}

/// Opens the journal of a disk and loads what it has.
pub(super) fn open(disk: Arc<dyn Disk>, options: &FileOptions) -> Result<Opened, StoreError> {
    try_open(disk, options).map_err(|error| not_opened(&error))
}

/// As [`open`], with the error of the journal.
pub(super) fn try_open(disk: Arc<dyn Disk>, options: &FileOptions) -> Result<Opened, OpenError> {
    let began = options.clock.micros();
    let path = disk.path();
    let sink = Arc::new(JournalSink::new(options));
    let memory = MemoryStore::journaled(Arc::clone(&options.clock), Arc::clone(&sink) as Arc<dyn Sink>);
    let mut loader = Loader::new(&memory);
    let (journal, recovered) = Journal::open(disk, &journal_options(options), |_, frame| loader.load(&frame))?;
    memory.raise_fence(reserved(&path, recovered.reserved)).map_err(|error| OpenError::Refused {
        file: path.clone(),
        offset: 0,
        source: error.into(),
    })?;
    let took = Duration::from_micros(options.clock.micros().saturating_sub(began));
    report(&path, &recovered, took);
    let journal = Arc::new(journal);
    sink.start(Arc::clone(&journal));
    let snapshots = Snapshots::new(memory.clone(), Arc::clone(&sink), options.snapshot_bytes);
    snapshots.take_at_start(&recovered);
    let thread = start_commits(&sink, snapshots.clone());
    let thread = thread.map_err(|source| Fault { file: path, doing: "start a thread for", source })?;
    Ok(Opened::new(memory, sink, snapshots, thread))
}

/// What the journal of a store is opened with.
pub(super) fn journal_options(options: &FileOptions) -> Options {
    let since = Some(Timestamp::from_millis(options.clock.micros() / 1_000));
    let holder =
        Holder { pid: Some(std::process::id()), host: Some(host_name()), process: Some(this_process()), since };
    let defaults = Options::new(OsEntropy::new().next(), holder, u32::from(CHANGES_VERSION));
    Options {
        segment_bytes: options.segment_bytes,
        // A small file needs no more room than it may fill.
        ahead_bytes: defaults.ahead_bytes.min(options.segment_bytes),
        ..defaults
    }
}

/// The fence that the journal reserves. One that no clock reaches is none: the store would have no fence left.
fn reserved(path: &str, fence: u64) -> Fence {
    if Fence(fence) <= Fence::LAST {
        return Fence(fence);
    }
    tracing::error!(
        path,
        fence,
        "the journal has a fence that no dq gives out, so the next ones follow the clock again; find out which program wrote it, and lower the fences in your own databases"
    );
    Fence::default()
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
    loop {
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

/// Applies the frames of a journal to a store.
pub(super) struct Loader<'a> {
    memory: &'a MemoryStore,
    topics: HashMap<TopicNumber, TopicKey, FixedState>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(memory: &'a MemoryStore) -> Self {
        Self { memory, topics: HashMap::default() }
    }

    pub(super) fn load(&mut self, frame: &Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.load_known(frame).map(drop)
    }

    /// As [`load`](Self::load). Returns the topic, and the rows that it does not have and the frame is of.
    pub(super) fn load_known(
        &mut self,
        frame: &Frame<'_>,
    ) -> Result<(&TopicKey, PassedOver), Box<dyn Error + Send + Sync>> {
        if frame.kind != CHANGES {
            return Err(format!("frames of kind {} are unknown", frame.kind).into());
        }
        let topic = match self.topics.entry(frame.topic) {
            Occupied(known) => known.into_mut(),
            Vacant(unknown) => {
                let key = topic_of(frame.name).ok_or_else(|| format!("`{}` is no name of a topic", frame.name))?;
                unknown.insert(key)
            }
        };
        let replay = if frame.origin == Origin::Journal { Replay::Strict } else { Replay::WithinDump };
        let passed = self.memory.replay(topic, frame.bytes, replay)?;
        Ok((topic, passed))
    }
}

/// The topic behind `APP:TOPIC`; no app has a colon.
fn topic_of(name: &str) -> Option<TopicKey> {
    let (app, topic) = name.split_once(':')?;
    Some(TopicKey { app: AppName::new(app).ok()?, topic: TopicName::new(topic).ok()? })
}
