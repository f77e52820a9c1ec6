//! Reads a directory part by part, so that little memory is needed however many jobs there are. Each part is the jobs whose ids fall
//! into it, so each job is in one part, and each part needs one reading of the files.

use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use super::journal::{Journal, Recovered};
use super::loader::{Loader, reserved};
use super::reading::{CheckError, bytes_of, repeated, store_at};
use crate::environment::WallClock;
use crate::store::memory::{MemoryStore, ReplayPart};
use crate::store::{MemoryUse, Store};

/// What the jobs of a part may take in memory, about.
const PART_BYTES: u64 = 160 << 20;

/// Tiny jobs take at most about so many times the bytes in memory that they have in the files.
const MAX_GROWTH: u64 = 8;

/// A directory that is read part by part. A program may use it meanwhile: then each part is of a moment of its own.
#[derive(Debug)]
pub struct Parts {
    disk: Arc<dyn Disk>,
    parts: Vec<ReplayPart>,
}

impl Parts {
    /// The parts of a directory. Blocks.
    ///
    /// # Errors
    /// [`CheckError`]: there is no such directory, it has no store, or its files are damaged.
    pub fn of(path: impl AsRef<Path>) -> Result<Self, CheckError> {
        let disk = store_at(path.as_ref())?;
        Ok(Self { parts: parts_of(&*disk)?, disk })
    }

    /// A directory on a disk that the program made, in so many parts.
    pub fn on(disk: Arc<dyn Disk>, parts: u64) -> Self {
        Self { disk, parts: ReplayPart::each(parts).collect() }
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Reads each part: a store that is of the past, and that nobody else sees. Each reads the whole directory, and blocks.
    pub fn read(&self) -> impl Iterator<Item = Result<MemoryStore, CheckError>> {
        self.parts.iter().map(|part| {
            let (memory, read) = load(&*self.disk, *part)?;
            memory.raise_fence(reserved(&self.disk.path(), read.reserved))?;
            Ok(memory)
        })
    }
}

/// The parts in which a directory is read.
pub(super) fn parts_of(disk: &dyn Disk) -> Result<Vec<ReplayPart>, CheckError> {
    parts_read_by(disk, |part| Ok(load(disk, part)?.0))
}

/// The parts in which a directory is read by `load`.
pub(super) fn parts_read_by(
    disk: &dyn Disk,
    load: impl FnOnce(ReplayPart) -> Result<MemoryStore, CheckError>,
) -> Result<Vec<ReplayPart>, CheckError> {
    let parts = if least_parts(disk)? == 1 { 1 } else { need_read_by(disk, load)?.div_ceil(PART_BYTES) };
    Ok(ReplayPart::each(parts).collect())
}

/// So many parts of a directory never take more memory than a part may.
fn least_parts(disk: &dyn Disk) -> Result<u64, CheckError> {
    Ok((bytes_of(disk)? * MAX_GROWTH).div_ceil(PART_BYTES).max(1))
}

/// Whether the jobs of a directory may take more memory than this.
pub(super) fn may_need(disk: &dyn Disk, most: u64) -> bool {
    bytes_of(disk).is_ok_and(|bytes| bytes.saturating_mul(MAX_GROWTH) > most)
}

/// What the jobs of a directory take in memory, about.
pub(super) fn need(disk: &dyn Disk) -> Result<u64, CheckError> {
    need_read_by(disk, |part| Ok(load(disk, part)?.0))
}

/// As [`need`]: `load` reads one part of them, which stands for the others.
fn need_read_by(
    disk: &dyn Disk,
    load: impl FnOnce(ReplayPart) -> Result<MemoryStore, CheckError>,
) -> Result<u64, CheckError> {
    let parts = least_parts(disk)?;
    let memory = load(ReplayPart::each(parts).next().unwrap_or(ReplayPart::WHOLE))?;
    let MemoryUse { bytes, .. } = memory.memory_use().unwrap_or_default();
    // A few large jobs may all be in other parts.
    Ok((bytes * parts).max(Journal::snapshot_bytes(disk)?))
}

/// Loads a part, which a process may use meanwhile.
pub(super) fn load(disk: &dyn Disk, part: ReplayPart) -> Result<(MemoryStore, Recovered), CheckError> {
    repeated(|| {
        let memory = MemoryStore::new(Arc::new(WallClock));
        let mut loader = Loader::new(&memory, part);
        let read = Journal::read(disk, |_, frame| loader.load(&frame))?;
        Ok((memory, read))
    })
}
