//! What can go wrong, and who must do what.

use std::io::{self, ErrorKind};

use super::options::Holder;
use super::position::Position;
use crate::store::file::disk::Disk;

/// What the disk refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {file}: {source}")]
pub struct Fault {
    /// The path of the file or directory.
    pub file: String,
    /// What was tried: a verb.
    pub doing: &'static str,
    /// The error of the disk.
    pub source: io::Error,
}

impl Fault {
    /// Whether the disk was full before anything was synced, so that the same may be tried again.
    pub(super) fn is_full(&self) -> bool {
        let full = matches!(self.source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        full && self.doing != "sync"
    }
}

impl From<Fault> for JournalError {
    fn from(fault: Fault) -> Self {
        if fault.is_full() { Self::Full(fault.to_string()) } else { Self::Poisoned(fault.to_string()) }
    }
}

/// Makes an error of the disk a fault of this action on a file, or on the directory if the name is empty.
pub(super) fn tried<T>(doing: &'static str, disk: &dyn Disk, name: &str, result: io::Result<T>) -> Result<T, Fault> {
    result.map_err(|source| Fault { file: path_of(disk, name), doing, source })
}

/// The path of a file; of the directory if the name is empty.
pub(super) fn path_of(disk: &dyn Disk, name: &str) -> String {
    if name.is_empty() { disk.path() } else { format!("{}/{name}", disk.path()) }
}

/// Why a journal was not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another opening in this process, uses the directory.
    #[error("{path} is in use by {holder}: stop that process, or use another directory")]
    Held {
        /// The directory.
        path: String,
        /// Who holds it.
        holder: Holder,
    },
    /// Bytes that were synced have changed since. Nothing after them is used.
    #[error(
        "{file} is damaged at offset {offset}: {what}. The disk changed or lost data that was synced. Check the disk, and \
         restore the whole directory from a backup, or save what is sound with `dq check PATH --salvage NEW`"
    )]
    Damaged {
        /// The path of the file.
        file: String,
        /// The offset in the file.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// A file that this journal did not write.
    #[error("{file} does not belong to this journal: {what}. Move it away, or name another directory")]
    Foreign {
        /// The path of the file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// Another version of dq wrote the file.
    #[error("{file} has version {version} of the {part}, and this program {}", what_to_use(*version, *known))]
    OtherVersion {
        /// The path of the file.
        file: String,
        /// `format` or `content`.
        part: &'static str,
        /// Its version.
        version: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// A sound part of a file is larger than this program reads.
    #[error(
        "{file} has a {what} of {bytes} bytes at offset {offset}, and this program reads {most} at most: use the version of dq \
         that wrote it"
    )]
    Beyond {
        /// The path of the file.
        file: String,
        /// The offset in the file.
        offset: u64,
        /// `group` or `frame`.
        what: &'static str,
        /// Its bytes.
        bytes: u64,
        /// The most bytes that this program reads.
        most: u64,
    },
    /// A file is missing that must be there.
    #[error(
        "{path} lacks {file}: {what}. Restore the whole directory from a backup, or save what is left with `dq check PATH --salvage NEW`"
    )]
    Missing {
        /// The directory.
        path: String,
        /// The name of the file.
        file: String,
        /// Why it must be there.
        what: String,
    },
    /// What the journal has takes more memory than it may. In MiB.
    #[error(
        "{path} needs about {need} MiB of memory for its jobs, and `max_memory` is {limit} MiB: raise it, use a machine with more \
         memory, or move the jobs with `dq export`, which needs little"
    )]
    TooLarge {
        /// The directory.
        path: String,
        /// What it needs.
        need: u64,
        /// What it may take.
        limit: u64,
    },
    /// The disk refused something.
    #[error(transparent)]
    Io(#[from] Fault),
    /// The user of the journal refused a frame.
    #[error("{file} has a frame at offset {offset} that does not apply: {source}")]
    Refused {
        /// The path of the file.
        file: String,
        /// The offset in the file of the frame's end.
        offset: u64,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What to do about a file of this version.
fn what_to_use(version: u32, known: u32) -> String {
    if version > known {
        format!("reads {known} at most: use a newer version of dq")
    } else {
        format!("reads version {known}: use the version of dq that wrote it")
    }
}

/// Why a journal took or wrote nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The disk is full. What was appended is kept in memory, in order; the next [`commit`](super::Journal::commit) tries to
    /// write it again, which is sound, because nothing of it was synced.
    #[error("the disk is full ({0}): make room; what waits is written then")]
    Full(String),
    /// A write or a sync failed, so nobody knows what the file has. This journal writes nothing more, ever. Frames above
    /// [`synced`](super::Journal::synced) may be found when the directory is opened again, or not.
    #[error(
        "{0}; the journal is stopped until the program starts again, and whether its last steps are kept is unknown"
    )]
    Poisoned(String),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// The content of a frame has more than [`MAX_FRAME`](super::MAX_FRAME) bytes, or the name of a topic more than
    /// [`MAX_NAME`](super::MAX_NAME). Nothing was appended.
    #[error("{bytes} bytes are more than a frame may have")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
}

/// Why a snapshot was not taken. The journal goes on as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Another snapshot is being taken.
    #[error("another snapshot is being taken")]
    Busy,
    /// The disk refused something. No file went away.
    #[error(transparent)]
    Io(#[from] Fault),
    /// The snapshot is complete and durable; files that it replaces are left, and the next snapshot removes them.
    #[error("the snapshot at {position} is taken, but {file} cannot be removed: {source}")]
    Left {
        /// Where the snapshot began.
        position: Position,
        /// The path of the file or directory.
        file: String,
        /// The error of the disk.
        source: io::Error,
    },
    /// The journal itself failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
