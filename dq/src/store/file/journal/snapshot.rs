//! Writing snapshots.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::appending::{Journal, check_frame};
use super::error::{Fault, JournalError, SnapshotError, path_of, tried};
use super::files::Files;
use super::frame::{END, NAME, RESERVATION, TopicNumber, UNIT};
use super::group::{Building, Stamp, Written};
use super::header::{FileHeader, Holds};
use super::position::{FileName, Position};
use super::tail::LastSnapshot;
use super::writer::create_unfinished;
use crate::store::file::disk::DiskFile;

/// A group of a snapshot is written once it has this many bytes.
const PAGE: usize = 256 << 10;

/// A snapshot is synced each time it has grown by this many bytes. One sync of everything would keep the disk busy for long, and
/// the syncs of the journal would wait behind it.
const SYNCED_AT_ONCE: usize = 1 << 20;

/// A snapshot that is being written. Dropping it gives it up.
///
/// The user appends a frame for everything that its state has, page by page, while the journal goes on. It replaces the journal
/// up to where it began once [`finish`](Self::finish) returned `Ok`.
#[derive(Debug)]
pub struct SnapshotWriter {
    journal: Arc<Journal>,
    file: Box<dyn DiskFile>,
    begin: u64,
    /// The bytes of the journal's frames before that.
    frames_before: u64,
    name: String,
    group: Building,
    named: BTreeSet<TopicNumber>,
    frames: u64,
    /// Bytes that were written since the last sync.
    unsynced: usize,
    is_finished: bool,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Where the journal was when it began.
    pub begin: Position,
    /// Where the journal was when it ended.
    pub end: Position,
    /// Its size.
    pub bytes: u64,
    /// How many older files went.
    pub removed: usize,
}

impl Journal {
    /// Begins a snapshot. Everything that was appended before this call must be in it.
    ///
    /// # Errors
    /// [`SnapshotError::Busy`] while another one is being taken; [`SnapshotError::Io`]; [`SnapshotError::Journal`].
    pub fn snapshot(self: &Arc<Self>) -> Result<SnapshotWriter, SnapshotError> {
        if self.is_snapshot_running.swap(true, Ordering::AcqRel) {
            return Err(SnapshotError::Busy);
        }
        let snapshot = self.begin_snapshot();
        if snapshot.is_err() {
            self.is_snapshot_running.store(false, Ordering::Release);
        }
        snapshot
    }

    fn begin_snapshot(self: &Arc<Self>) -> Result<SnapshotWriter, SnapshotError> {
        let (begin, reserved, frames_before) = {
            let tail = self.tail()?;
            (tail.appended.0, tail.reserved, tail.frame_bytes())
        };
        let header =
            FileHeader { holds: Holds::Snapshot, identity: self.identity, first: begin, synced: begin, length: 0 };
        let name = FileName::snapshot(begin);
        let file = create_unfinished(&*self.disk, &FileName::unfinished(&name), &header)?;
        let group = Building::start(begin + UNIT as u64, Vec::new());
        let journal = Arc::clone(self);
        let mut snapshot = SnapshotWriter {
            journal,
            file,
            begin,
            frames_before,
            name,
            group,
            named: BTreeSet::new(),
            frames: 0,
            unsynced: 0,
            is_finished: false,
        };
        if reserved > 0 {
            snapshot.push(TopicNumber::NONE, RESERVATION, &reserved.to_le_bytes());
        }
        Ok(snapshot)
    }
}

impl SnapshotWriter {
    /// Adds a frame. Every 256 KiB it writes what was added.
    ///
    /// # Errors
    /// [`SnapshotError::Io`], or [`JournalError::TooLarge`] as [`SnapshotError::Journal`].
    ///
    /// # Panics
    /// If `kind` is [`FIRST_OWN_KIND`] or above.
    pub fn append(&mut self, topic: TopicNumber, kind: u8, bytes: &[u8]) -> Result<(), SnapshotError> {
        check_frame(kind, bytes)?;
        if self.group.is_full_for(bytes.len()) {
            self.write()?;
        }
        if topic != TopicNumber::NONE && self.named.insert(topic) {
            let name = self.journal.tail()?.topics.name(topic).map(str::to_owned);
            self.push(topic, NAME, name.expect("a topic has its number from this journal").as_bytes());
        }
        self.push(topic, kind, bytes);
        if self.group.end() - self.group.position >= PAGE as u64 { Ok(self.write()?) } else { Ok(()) }
    }

    fn push(&mut self, topic: TopicNumber, kind: u8, bytes: &[u8]) {
        self.group.push(topic, kind, bytes);
        self.frames += 1;
    }

    fn write(&mut self) -> Result<(), Fault> {
        let offset = self.group.position - self.begin;
        let written = Written { synced: self.begin, length: 0 };
        let bytes = self.group.finish(Stamp::of(Holds::Snapshot, self.journal.identity), written, 0);
        let unfinished = FileName::unfinished(&self.name);
        tried("write", &*self.journal.disk, &unfinished, self.file.write_at(offset, bytes))?;
        self.unsynced += bytes.len();
        if self.unsynced >= SYNCED_AT_ONCE {
            tried("sync", &*self.journal.disk, &unfinished, self.file.sync())?;
            self.unsynced = 0;
        }
        let next = self.group.next();
        self.group = Building::start(next, std::mem::take(&mut self.group).into_buffer());
        Ok(())
    }

    /// Completes the snapshot: commits the journal up to now, makes the file durable under its name, and only then removes the files
    /// that it replaces.
    ///
    /// # Errors
    /// [`SnapshotError::Io`] or [`SnapshotError::Journal`]: there is no snapshot, and no file went. [`SnapshotError::Left`]: it is
    /// taken, but old files are left.
    pub fn finish(mut self) -> Result<Taken, SnapshotError> {
        let journal = Arc::clone(&self.journal);
        let end = journal.appended()?;
        let frames = self.frames;
        self.push(TopicNumber::NONE, END, &[end.0.to_le_bytes(), frames.to_le_bytes()].concat());
        self.write()?;
        let bytes = self.group.position - self.begin;
        journal.commit()?;
        let (disk, unfinished) = (&*journal.disk, FileName::unfinished(&self.name));
        tried("sync", disk, &unfinished, self.file.sync())?;
        tried("rename", disk, &unfinished, disk.rename(&unfinished, &self.name))?;
        self.is_finished = true;
        journal.sync_directory()?;
        journal.tail()?.snapshot = LastSnapshot { begin: self.begin, frames: self.frames_before, bytes };
        let begin = Position(self.begin);
        let removed = journal.remove_replaced(begin)?;
        Ok(Taken { begin, end, bytes, removed })
    }
}

impl Journal {
    /// Nobody knows which names are durable after a failed sync of the directory, so it poisons the journal.
    fn sync_directory(&self) -> Result<(), JournalError> {
        let synced = tried("sync", &*self.disk, "", self.disk.sync());
        synced.map_err(|fault| self.poison.get_or_init(|| fault.into()).clone())
    }

    fn remove_replaced(&self, position: Position) -> Result<usize, SnapshotError> {
        let disk = &*self.disk;
        let listed = Files::list(disk).map_err(|error| SnapshotError::Left {
            position,
            file: disk.path(),
            source: std::io::Error::other(error),
        })?;
        let replaced = listed.replaced_by(position.0);
        for name in &replaced {
            let left = |source| SnapshotError::Left { position, file: path_of(disk, name), source };
            disk.remove(name).map_err(left)?;
        }
        if !replaced.is_empty() {
            self.sync_directory()?;
        }
        Ok(replaced.len())
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // The next opening removes the file if this does not.
            let _ = self.journal.disk.remove(&FileName::unfinished(&self.name));
        }
        self.journal.is_snapshot_running.store(false, Ordering::Release);
    }
}
