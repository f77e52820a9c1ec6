//! An error of the disk, and what it means.

use std::io::{self, ErrorKind};

use super::error::{JournalError, OpenError, SnapshotError};
use crate::store::file::disk::Disk;

/// What the disk refused.
#[derive(Debug)]
pub(super) struct Fault {
    /// The path of the file or directory.
    pub(super) file: String,
    pub(super) doing: Doing,
    pub(super) source: io::Error,
}

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    List,
    Create,
    Open,
    Read,
    Write,
    Sync,
    Rename,
    Remove,
    Lock,
}

impl Doing {
    const fn text(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::Lock => "lock",
        }
    }

    /// Makes an error of the disk a fault of this action on a file.
    pub(super) fn fault<T>(self, disk: &dyn Disk, name: &str, result: io::Result<T>) -> Result<T, Fault> {
        result.map_err(|source| Fault { file: path_of(disk, name), doing: self, source })
    }

    /// Makes an error of the disk a fault of this action on the directory.
    pub(super) fn directory_fault<T>(self, disk: &dyn Disk, result: io::Result<T>) -> Result<T, Fault> {
        result.map_err(|source| Fault { file: disk.path(), doing: self, source })
    }
}

/// The path of a file.
pub(super) fn path_of(disk: &dyn Disk, name: &str) -> String {
    format!("{}/{name}", disk.path())
}

impl Fault {
    /// Whether the disk was full before anything was synced, so that the same may be tried again.
    pub(super) fn is_full(&self) -> bool {
        let full = matches!(self.source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        full && self.doing != Doing::Sync
    }
}

impl From<Fault> for JournalError {
    fn from(fault: Fault) -> Self {
        let text = format!("cannot {} {}: {}", fault.doing.text(), fault.file, fault.source);
        if fault.is_full() { Self::Full(text) } else { Self::Poisoned(text) }
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        Self::Io { file: fault.file, doing: fault.doing.text(), source: fault.source }
    }
}

impl From<Fault> for SnapshotError {
    fn from(fault: Fault) -> Self {
        Self::Io { file: fault.file, doing: fault.doing.text(), source: fault.source }
    }
}
