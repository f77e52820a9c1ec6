//! Opening a journal.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use super::appending::Journal;
use super::error::{OpenError, tried};
use super::files::Files;
use super::frame::{TopicNumber, UNIT};
use super::group::Stamp;
use super::groups::{Groups, Next};
use super::header::Holds;
use super::options::{Holder, Options};
use super::position::{LOCK, Position};
use super::recover::{Found, Recovered, recover};
use super::replay::{Frame, Replay};
use super::start::Start;
use super::topics::Topics;
use super::writer::Writer;
use crate::store::file::disk::{Disk, DiskLock, Locked};

impl Journal {
    /// Opens the journal of a directory, or makes one if the directory has none, and gives every frame to `apply`, with the position
    /// of its end: first those of the newest snapshot, then those that were appended since it began.
    ///
    /// A torn tail is cut, see [`Recovered::torn`]. The last group moves into a new segment, unless it is known to be durable: the
    /// program before this one may have died before its sync, or after a sync that failed.
    ///
    /// # Errors
    /// [`OpenError`], which names the file, the offset and what to do. No file was changed.
    pub fn open<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        options: &Options,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<(Self, Recovered), OpenError> {
        let lock = lock(&*disk, &options.holder)?;
        let files = Files::list(&*disk)?;
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        let mut replay = Replay::default();
        let found = recover(&*disk, &files, (&mut replay, &mut apply), &mut |_, _| Ok(()))?;
        let start = match &found {
            Some(found) => Start::after(&*disk, &files, found, &mut replay, options)?,
            None => Start::new_journal(&*disk, &files, options)?,
        };
        let (identity, segment, end) = (start.header.identity, start.header.first, start.end);
        let snapshot = found.as_ref().and_then(|found| found.snapshot.as_ref());
        let [begin, bytes] = snapshot.map_or([0; 2], |snapshot| [snapshot.begin, snapshot.bytes]);
        let recovered =
            Recovered { end: Position(end), topics: all_topics(&start.tail.topics), ..report(found, &files, &replay) };
        let writer = Writer {
            disk: Arc::clone(&disk),
            stamp: Stamp::journal(identity),
            segment,
            file: start.file,
            zeroed: start.zeroed,
            segment_bytes: options.segment_bytes,
            ahead_bytes: options.ahead_bytes,
            synced: end,
            unwritten: None,
        };
        let journal = Self {
            tail: Mutex::new(start.tail),
            writer: Mutex::new(writer),
            disk,
            identity,
            synced: AtomicU64::new(end),
            memory: AtomicU32::new(replay.memory),
            poison: OnceLock::new(),
            is_snapshot_running: AtomicBool::new(false),
            snapshot_begin: AtomicU64::new(begin),
            snapshot_bytes: AtomicU64::new(bytes),
            snapshot_frames: AtomicU64::new(0),
            _lock: lock,
        };
        Ok((journal, recovered))
    }

    /// Reads a journal without changing anything, also while a process uses it: then it ends somewhere. Any error may come from a
    /// snapshot that was taken meanwhile, with which files come and go: read again then.
    ///
    /// # Errors
    /// As [`open`](Self::open), without [`OpenError::Held`].
    pub fn read<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: &dyn Disk,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<Recovered, OpenError> {
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        let mut replay = Replay::default();
        let files = Files::list(disk)?;
        let found = recover(disk, &files, (&mut replay, &mut apply), &mut |_, _| Ok(()))?;
        Ok(report(found, &files, &replay))
    }

    /// The bytes of the newest snapshot, which were in memory together; 0 without one.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub fn snapshot_bytes(disk: &dyn Disk) -> Result<u64, OpenError> {
        Ok(Files::list(disk)?.snapshot_bytes)
    }

    /// What the state of the user took in memory when the last group was written; `None` if that was not noted. Reads the last segment only.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn noted_memory(disk: &dyn Disk) -> Result<Option<u64>, OpenError> {
        let mut last = None;
        for first in Files::list(disk)?.segments.into_iter().rev() {
            let mut file = Groups::open(disk, Holds::Journal, first)?;
            while file.offset < file.length
                && let Next::Group(_, header) = file.next()?
            {
                last = Some(u64::from(header.memory) << 10);
            }
            if last.is_some() {
                break;
            }
        }
        Ok(last.filter(|bytes| *bytes > 0))
    }

    /// Whether a directory has no journal yet.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub fn is_missing(disk: &dyn Disk) -> Result<bool, OpenError> {
        let files = Files::list(disk)?;
        Ok(files.segments.is_empty() && files.snapshots.is_empty() && files.watermarks.is_empty())
    }
}

/// Takes the lock of a directory.
fn lock(disk: &dyn Disk, holder: &Holder) -> Result<Box<dyn DiskLock>, OpenError> {
    match tried("lock", disk, LOCK, disk.lock(LOCK, &holder.encode()))? {
        Locked::Held(lock) => Ok(lock),
        Locked::By(text) => Err(OpenError::Held { path: disk.path(), holder: Holder::decode(&text) }),
    }
}

fn all_topics(topics: &Topics) -> Vec<(TopicNumber, String)> {
    topics.all().map(|(number, name)| (number, name.to_owned())).collect()
}

fn report(found: Option<Found>, files: &Files, replay: &Replay) -> Recovered {
    let nothing = Recovered {
        end: Position(UNIT as u64),
        is_new: true,
        is_sealed: false,
        torn: None,
        snapshot: None,
        segments: (files.segments.len(), files.segment_bytes),
        reserved: replay.reserved,
        frames: replay.frames,
        topics: all_topics(&replay.topics),
    };
    let Some(found) = found else { return nothing };
    Recovered {
        end: Position(found.last.end()),
        is_new: false,
        is_sealed: replay.is_sealed && found.last.torn.is_none(),
        torn: found.last.torn,
        snapshot: found.snapshot.map(|snapshot| (Position(snapshot.begin), Position(snapshot.end))),
        ..nothing
    }
}
