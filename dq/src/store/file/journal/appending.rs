//! Appending and committing.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::error::JournalError;
use super::frame::{FIRST_OWN_KIND, MAX_FRAME, TopicNumber, frame_header};
use super::position::Position;
use super::tail::Tail;
use super::topics::MAX_NAME;
use super::writer::Writer;
use crate::store::file::disk::{Disk, DiskLock};

/// A journal that is open for appending. It has no thread and no clock: whoever calls [`commit`](Self::commit) writes.
///
/// All methods may be called from many threads. Only `commit`, `seal` and snapshots use the disk, and they block.
#[derive(Debug)]
pub struct Journal {
    pub(super) tail: Mutex<Tail>,
    pub(super) writer: Mutex<Writer>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) identity: u64,
    pub(super) synced: AtomicU64,
    /// What the state of the user takes in memory, in KiB.
    pub(super) memory: AtomicU32,
    pub(super) poison: OnceLock<JournalError>,
    pub(super) is_snapshot_running: AtomicBool,
    pub(super) _lock: DiskLock,
}

impl Journal {
    /// Returns the number that stands for a topic in frames. A name has one number, as long as this journal is open.
    ///
    /// # Errors
    /// [`JournalError::TooLarge`] if the name is longer than [`MAX_NAME`] bytes; [`JournalError::Poisoned`].
    pub fn topic(&self, name: &str) -> Result<TopicNumber, JournalError> {
        if name.len() > MAX_NAME {
            return Err(JournalError::TooLarge { bytes: name.len() });
        }
        Ok(self.tail()?.topics.number(name))
    }

    /// Appends a frame to the open group and returns the frame's end. It is durable once [`synced`](Self::synced) has reached that
    /// position. This takes a short lock and no other time than for a copy of the bytes.
    ///
    /// # Errors
    /// [`JournalError::TooLarge`], [`JournalError::Poisoned`] or [`JournalError::Closed`]: nothing was appended.
    ///
    /// # Panics
    /// If `kind` is [`FIRST_OWN_KIND`] or above, or the number of the topic is of another journal.
    pub fn append(&self, topic: TopicNumber, kind: u8, bytes: &[u8]) -> Result<Position, JournalError> {
        check_frame(kind, bytes)?;
        let header = frame_header(topic, kind, bytes);
        Ok(self.open_tail()?.push(topic, &header, bytes))
    }

    /// Appends a reservation, which replaces the one before it: the user of the journal promises to give out no number above it.
    /// [`Recovered`](super::Recovered) has the last one. Segments and snapshots repeat it.
    ///
    /// # Errors
    /// [`JournalError::Poisoned`] or [`JournalError::Closed`]: nothing was appended.
    pub fn reserve(&self, number: u64) -> Result<Position, JournalError> {
        Ok(self.open_tail()?.reserve(number))
    }

    /// From now on each group says that the state of the user takes so many bytes in memory: [`noted_memory`](Self::noted_memory).
    pub fn note_memory(&self, bytes: u64) {
        self.memory.store(u32::try_from(bytes >> 10).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Writes and syncs all that was appended before this call, and returns up to where everything is synced. One caller writes at
    /// a time, the others wait for it. Without anything to write it returns at once.
    ///
    /// # Errors
    /// [`JournalError::Full`]: what could not be written is kept, and the next call tries again. [`JournalError::Poisoned`]: a
    /// write or sync failed, and nothing will ever be written again.
    pub fn commit(&self) -> Result<Position, JournalError> {
        let mut writer = self.writer()?;
        let target = self.tail()?.appended.0;
        while writer.synced < target {
            let next = match writer.unwritten.take() {
                Some(unwritten) => Some(unwritten),
                None => self.tail()?.take(),
            };
            let Some(mut closed) = next else { break };
            if let Err(fault) = writer.write(&mut closed, self.memory.load(Ordering::Relaxed)) {
                let error = JournalError::from(fault);
                if let JournalError::Poisoned(_) = error {
                    // Whoever fails first says why.
                    return Err(self.poison.get_or_init(|| error).clone());
                }
                writer.unwritten = Some(closed);
                return Err(error);
            }
            self.synced.store(writer.synced, Ordering::Release);
            self.tail()?.reuse(closed.group);
        }
        Ok(self.synced())
    }

    /// Everything before this position is durable.
    pub fn synced(&self) -> Position {
        Position(self.synced.load(Ordering::Acquire))
    }

    /// The end of the last frame that was appended.
    ///
    /// # Errors
    /// [`JournalError::Poisoned`].
    pub fn appended(&self) -> Result<Position, JournalError> {
        Ok(self.tail()?.appended)
    }

    /// By how much the journal has grown since the last snapshot began, and how large that snapshot is: what decides when the next one
    /// is due.
    ///
    /// # Errors
    /// [`JournalError::Poisoned`].
    pub fn growth(&self) -> Result<Growth, JournalError> {
        let tail = self.tail()?;
        let frames = tail.frame_bytes().saturating_sub(tail.snapshot.frames);
        let grown = tail.appended.0.saturating_sub(tail.snapshot.begin);
        Ok(Growth { frames, padding: grown.saturating_sub(frames), snapshot: tail.snapshot.bytes })
    }

    /// Why the journal writes nothing more, if that is so.
    pub fn poisoned(&self) -> Option<JournalError> {
        self.poison.get().cloned()
    }

    /// Closes the journal cleanly: nothing more is appended, everything is committed, and a last group says so. From then on damage
    /// anywhere before that group is an error at the next opening, never a torn tail. A second call does nothing.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). After [`JournalError::Full`] it may be called again.
    pub fn seal(&self) -> Result<(), JournalError> {
        self.tail()?.seal();
        self.commit().map(drop)
    }

    fn open_tail(&self) -> Result<MutexGuard<'_, Tail>, JournalError> {
        let tail = self.tail()?;
        if tail.is_sealed { Err(JournalError::Closed) } else { Ok(tail) }
    }

    pub(super) fn tail(&self) -> Result<MutexGuard<'_, Tail>, JournalError> {
        self.sound(self.tail.lock().ok())
    }

    pub(super) fn writer(&self) -> Result<MutexGuard<'_, Writer>, JournalError> {
        self.sound(self.writer.lock().ok())
    }

    /// Refuses everything once the journal is poisoned. A panic below a lock poisons it, too: a group may have got lost.
    fn sound<T>(&self, guard: Option<T>) -> Result<T, JournalError> {
        let Some(guard) = guard else {
            let error = || JournalError::Poisoned("the journal panicked, which is a defect of dq".to_owned());
            return Err(self.poison.get_or_init(error).clone());
        };
        match self.poison.get() {
            Some(error) => Err(error.clone()),
            None => Ok(guard),
        }
    }
}

/// The result of [`Journal::growth`], in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Of the frames since the last snapshot began.
    pub frames: u64,
    /// Of all that the files have beside these: headers, and zeros up to the next unit.
    pub padding: u64,
    /// Of the last snapshot; 0 if there is none.
    pub snapshot: u64,
}

/// Refuses a frame that is too large.
pub(super) fn check_frame(kind: u8, bytes: &[u8]) -> Result<(), JournalError> {
    assert!(kind < FIRST_OWN_KIND, "the kind {kind} is the journal's own");
    if bytes.len() > MAX_FRAME { Err(JournalError::TooLarge { bytes: bytes.len() }) } else { Ok(()) }
}
