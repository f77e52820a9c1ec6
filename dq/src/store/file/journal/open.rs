//! Opening a journal.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use super::appending::Journal;
use super::error::OpenError;
use super::fault::{Doing, Fault};
use super::files::Files;
use super::group::Stamp;
use super::holder::Holder;
use super::options::Options;
use super::position::{FileName, LOCK, Position};
use super::recover::{Found, Recovered, recover};
use super::replay::{Frame, Replay};
use super::segment::create_segment;
use super::tail::Tail;
use super::writer::Writer;
use crate::store::file::disk::{Access, Disk, DiskFile, DiskLock, Locked};

impl Journal {
    /// Opens the journal of a directory, or makes one if the directory has none, and gives every frame to `apply`, with the position
    /// of its end: first those of the newest snapshot, then those that were appended since it began.
    ///
    /// A torn tail is cut, see [`Recovered::torn`]. The last group is written once more and synced, because a program before this
    /// one may have died before its sync, or after a sync that failed.
    ///
    /// # Errors
    /// [`OpenError`], which names the file, the offset and what to do. The directory is as it was, unless it is
    /// [`OpenError::Io`] while the end was repaired.
    pub fn open<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: Arc<dyn Disk>,
        options: &Options,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<(Self, Recovered), OpenError> {
        let lock = lock(&*disk, &options.holder)?;
        let files = Files::list(&*disk)?;
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        let mut replay = Replay::new(&mut apply);
        let found = recover(&*disk, &files, options.content, &mut replay)?;
        let (file, found) = match found {
            Some(found) => (repair(&*disk, &files, &found)?, found),
            None => {
                remove_all(&*disk, &files.unfinished)?;
                let parts = (options.content, options.identity, 0);
                (create_segment(&*disk, parts, options.ahead_bytes)?, Found::none(options.identity))
            }
        };
        let (last, identity) = (&found.last, found.identity);
        let length = Doing::Read.fault(&*disk, &FileName::segment(last.segment), file.length())?;
        let (segment, end, zeroed) = (last.segment, last.segment + last.offset, length.max(last.offset));
        let start = (segment, end, !last.is_current);
        let [begin, bytes] = found.snapshot.as_ref().map_or([0; 2], |snapshot| [snapshot.begin, snapshot.bytes]);
        let recovered = report(found, &replay);
        let tail = Tail::new(options.segment_bytes, start, replay.topics, replay.reserved);
        let writer = Writer {
            disk: Arc::clone(&disk),
            stamp: Stamp::journal(identity),
            content: options.content,
            segment,
            file,
            zeroed,
            segment_bytes: options.segment_bytes,
            ahead_bytes: options.ahead_bytes,
            synced: end,
            unwritten: None,
        };
        let journal = Self {
            tail: Mutex::new(tail),
            writer: Mutex::new(writer),
            disk,
            identity,
            content: options.content,
            synced: AtomicU64::new(end),
            poison: OnceLock::new(),
            is_snapshot_running: AtomicBool::new(false),
            snapshot_begin: AtomicU64::new(begin),
            snapshot_bytes: AtomicU64::new(bytes),
            _lock: lock,
        };
        Ok((journal, recovered))
    }

    /// Reads a journal without changing anything, also while a process uses it: then it ends somewhere, and a file may go away
    /// meanwhile, which is [`OpenError::Io`] with [`NotFound`](std::io::ErrorKind::NotFound); read again then.
    ///
    /// # Errors
    /// As [`open`](Self::open), without [`OpenError::Held`].
    pub fn read<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: &dyn Disk,
        content: u32,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<Recovered, OpenError> {
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        let mut replay = Replay::new(&mut apply);
        let found = recover(disk, &Files::list(disk)?, content, &mut replay)?;
        Ok(report(found.unwrap_or_else(|| Found::none(0)), &replay))
    }
}

/// Takes the lock of a directory.
fn lock(disk: &dyn Disk, holder: &Holder) -> Result<Box<dyn DiskLock>, OpenError> {
    match Doing::Lock.fault(disk, LOCK, disk.lock(LOCK, &holder.encode()))? {
        Locked::Held(lock) => Ok(lock),
        Locked::By(text) => Err(OpenError::Held { path: disk.path(), holder: Holder::decode(&text) }),
    }
}

/// Makes what was found durable, takes away what an interrupted snapshot or deletion left, and cuts the torn tail.
fn repair(disk: &dyn Disk, files: &Files, found: &Found) -> Result<Box<dyn DiskFile>, Fault> {
    let last = &found.last;
    let name = FileName::segment(last.segment);
    let file = Doing::Open.fault(disk, &name, disk.open(&name, Access::Write))?;
    if let Some((offset, length)) = last.group {
        let mut group = vec![0; usize::try_from(length).expect("a group fits into memory")];
        let read = Doing::Read.fault(disk, &name, file.read_at(offset, &mut group))?;
        // Written and not only synced: the system may believe that pages are clean whose sync failed.
        Doing::Write.fault(disk, &name, file.write_at(offset, &group[..read]))?;
    }
    if last.torn.is_some() {
        Doing::Truncate.fault(disk, &name, file.truncate(last.offset))?;
    }
    Doing::Sync.fault(disk, &name, file.sync())?;
    // Before anything goes: the snapshot that replaces it may have its name only in memory.
    Doing::Sync.directory_fault(disk, disk.sync())?;
    let begin = found.snapshot.as_ref().map_or(0, |snapshot| snapshot.begin);
    remove_all(disk, &files.unfinished)?;
    if remove_all(disk, &files.replaced_by(begin))? {
        Doing::Sync.directory_fault(disk, disk.sync())?;
    }
    Ok(file)
}

/// Removes files. Returns whether there were any.
fn remove_all(disk: &dyn Disk, names: &[String]) -> Result<bool, Fault> {
    for name in names {
        Doing::Remove.fault(disk, name, disk.remove(name))?;
    }
    Ok(!names.is_empty())
}

fn report(found: Found, replay: &Replay<'_>) -> Recovered {
    let snapshot = found.snapshot.map(|snapshot| (Position(snapshot.begin), Position(snapshot.end)));
    let topics = replay.topics.all().map(|(number, name)| (number, name.to_owned())).collect();
    Recovered {
        end: Position(found.last.segment + found.last.offset),
        is_new: found.is_new,
        is_sealed: replay.is_sealed && found.last.torn.is_none(),
        torn: found.last.torn,
        snapshot,
        reserved: replay.reserved,
        frames: replay.frames,
        topics,
        passed_over: found.passed_over,
    }
}
