//! Copies a directory, also while a process uses it.

use std::path::Path;

use super::disk::Disk;
use super::journal::{Fault, Journal, OpenError};
use super::reading::{CheckError, directory, repeated, store_at};

/// Copies the store of a directory to a new one, also while a process uses it: everything that was confirmed before this call, and perhaps
/// more, as a store that opens. Returns the bytes of the copy. Blocks.
///
/// # Errors
/// [`CheckError`]: the directory is not sound, or `to` is not empty, or a disk refuses. A copy that failed does not open.
pub fn backup(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64, CheckError> {
    let from = store_at(from.as_ref())?;
    backup_on(&*from, &*directory(to.as_ref())?)
}

/// As [`backup`], on disks that the program made.
///
/// # Errors
/// As [`backup`].
pub fn backup_on(from: &dyn Disk, to: &dyn Disk) -> Result<u64, CheckError> {
    must_be_empty(to)?;
    repeated(|| {
        // What a try has left that read files which went meanwhile.
        tried("clear", to, || to.list()?.iter().try_for_each(|entry| to.remove(&entry.name)))?;
        Ok(Journal::copy(from, to)?)
    })
}

/// What dq fills was made for that, so it never mixes two stores.
pub(super) fn must_be_empty(disk: &dyn Disk) -> Result<(), CheckError> {
    let is_empty = tried("list", disk, || Ok(disk.list()?.is_empty()))?;
    if is_empty { Ok(()) } else { Err(CheckError::NotEmpty { path: disk.path() }) }
}

fn tried<T>(doing: &'static str, disk: &dyn Disk, work: impl FnOnce() -> std::io::Result<T>) -> Result<T, CheckError> {
    work().map_err(|source| OpenError::Io(Fault { file: disk.path(), doing, source }).into())
}
