//! Opening a journal.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use super::appending::Journal;
use super::error::{OpenError, tried};
use super::files::Files;
use super::frame::UNIT;
use super::group::Stamp;
use super::groups::{Groups, Next};
use super::header::Holds;
use super::options::{Holder, Options};
use super::position::{LOCK, Position};
use super::recover::{Last, Recovered, recover};
use super::replay::{Frame, Replay};
use super::start::Start;
use super::tail::LastSnapshot;
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
        let mut last = recover(&*disk, &files, &mut replay, &mut apply, &mut |_| Ok(()))?;
        let mut start = match &mut last {
            Some(last) => Start::after(&*disk, &files, last, &mut replay, options)?,
            None => Start::new_journal(&*disk, &files, options)?,
        };
        start.tail.snapshot = LastSnapshot { begin: replay.begin, frames: 0, bytes: replay.snapshot_bytes };
        let (identity, segment, end) = (start.header.identity, start.header.first, start.end);
        let recovered = Recovered { end: Position(end), ..report(last.as_ref(), &files, &replay) };
        let writer = Writer {
            disk: Arc::clone(&disk),
            stamp: Stamp::of(Holds::Journal, identity),
            segment,
            file: start.file,
            length: start.length,
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
        let last = recover(disk, &files, &mut replay, &mut apply, &mut |_| Ok(()))?;
        Ok(report(last.as_ref(), &files, &replay))
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
fn lock(disk: &dyn Disk, holder: &Holder) -> Result<DiskLock, OpenError> {
    match tried("lock", disk, LOCK, disk.lock(LOCK, &holder.encode()))? {
        Locked::Held(lock) => Ok(lock),
        Locked::By(text) => Err(OpenError::Held { path: disk.path(), holder: Holder::decode(&text) }),
    }
}

fn report(last: Option<&Last>, files: &Files, replay: &Replay) -> Recovered {
    let (end, torn) = last.map_or((UNIT as u64, None), |last| (last.end(), last.torn.clone()));
    Recovered {
        end: Position(end),
        is_new: last.is_none(),
        is_sealed: replay.is_sealed && torn.is_none(),
        torn,
        snapshot: replay.end.map(|end| (Position(replay.begin), Position(end.position))),
        segments: (files.segments.len(), files.segment_bytes),
        reserved: replay.reserved,
        frames: replay.frames,
    }
}
