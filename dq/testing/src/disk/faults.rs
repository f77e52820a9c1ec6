//! Which operations fail.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

/// An operation of a disk that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Of a file.
    Write,
    /// Of a file.
    Sync,
    /// Of the directory.
    SyncDirectory,
    /// Of a file.
    Create,
    /// Of a file.
    Rename,
    /// Of a file.
    Remove,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Write, Self::Sync, Self::SyncDirectory, Self::Create, Self::Rename, Self::Remove];
}

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    /// It fails, and does a part of its work.
    Fails(ErrorKind),
    /// The machine is off: nothing happens any more.
    Off,
}

/// Which operations fail, and how many there were.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    pub(super) counts: BTreeMap<Operation, u64>,
    pub(super) log: Vec<Operation>,
    pub(super) failing: Option<(Operation, u64, ErrorKind)>,
    pub(super) off_at: Option<u64>,
    /// How many bytes all files may have together.
    pub(super) room: Option<u64>,
}

impl Faults {
    /// Counts from 0 again.
    pub(super) fn restart(&mut self) {
        self.counts.clear();
        self.log.clear();
    }

    /// Counts an operation and says what happens to it.
    pub(super) fn next(&mut self, operation: Operation) -> Verdict {
        let number = self.counts.entry(operation).or_default();
        let of_kind = *number;
        *number += 1;
        self.log.push(operation);
        if self.off_at.is_some_and(|at| self.log.len() as u64 > at) {
            return Verdict::Off;
        }
        match self.failing {
            Some((failing, at, kind)) if failing == operation && at == of_kind => Verdict::Fails(kind),
            _ => Verdict::Done,
        }
    }
}

impl Verdict {
    /// The error of an operation that does nothing if it fails.
    pub(super) fn or_nothing(self) -> io::Result<()> {
        match self {
            Self::Done => Ok(()),
            Self::Fails(kind) => Err(kind.into()),
            Self::Off => Err(off()),
        }
    }
}

/// The error of everything once the machine is off.
pub(super) fn off() -> io::Error {
    io::Error::other("the machine is off")
}
