//! Finds a directory and reads it without changing it, also while a process uses it.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use super::journal::{Fault, Journal, OpenError};
use crate::job::TopicKey;
use crate::store::StoreError;

/// How often the files are read again that a running process replaces meanwhile.
const READINGS: usize = 10;

/// Why a directory is not sound, or could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no such directory.
    #[error("{path} is not a directory")]
    NoDirectory {
        /// Its path.
        path: String,
    },
    /// The directory holds no journal.
    #[error("{path} holds no store: it has no journal")]
    NoStore {
        /// Its path.
        path: String,
    },
    /// A copy needs an empty directory.
    #[error("{path} is not empty: name a directory that does not exist yet")]
    NotEmpty {
        /// Its path.
        path: String,
    },
    /// The files are damaged, foreign or of another version, or cannot be read.
    #[error(transparent)]
    Files(#[from] OpenError),
    /// The files can be read, but a job is in no place or in several, or a fence is beyond what was reserved: a defect of dq.
    #[error("topic {topic} of {path} is wrong, which is a defect of dq: {what}")]
    Inconsistent {
        /// The path of the directory.
        path: String,
        /// The topic.
        topic: TopicKey,
        /// What is wrong.
        what: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads again as long as a running process removes files meanwhile, which a snapshot has replaced.
pub(super) fn repeated<T>(mut read: impl FnMut() -> Result<T, CheckError>) -> Result<T, CheckError> {
    for _ in 1..READINGS {
        match read() {
            Err(CheckError::Files(OpenError::Io(Fault { source, .. }))) if source.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
    }
    read()
}

pub(super) fn bytes_of(disk: &dyn Disk) -> Result<u64, CheckError> {
    let listed = disk.list().map_err(|source| OpenError::Io(Fault { file: disk.path(), doing: "list", source }))?;
    Ok(listed.iter().map(|entry| entry.bytes).sum())
}

/// The directory, which must exist: a check makes none.
pub(super) fn existing(path: &Path) -> Result<Arc<dyn Disk>, CheckError> {
    if !path.is_dir() {
        return Err(CheckError::NoDirectory { path: path.display().to_string() });
    }
    directory(path)
}

/// A directory that holds a store.
pub(super) fn store_at(path: &Path) -> Result<Arc<dyn Disk>, CheckError> {
    let disk = existing(path)?;
    if Journal::is_missing(&*disk)? { Err(CheckError::NoStore { path: disk.path() }) } else { Ok(disk) }
}

/// The directory, which is made if it is missing.
pub(super) fn directory(path: &Path) -> Result<Arc<dyn Disk>, CheckError> {
    #[cfg(unix)]
    return match super::disk::Directory::open(path) {
        Ok(directory) => Ok(Arc::new(directory)),
        Err(source) => Err(OpenError::Io(Fault { file: path.display().to_string(), doing: "open", source }).into()),
    };
    #[cfg(not(unix))]
    Err(StoreError::Halted { operation: "open", reason: "`file:` needs a Unix system".to_owned() }.into())
}
