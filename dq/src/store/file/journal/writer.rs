//! Writes groups and syncs them, one at a time; and makes files: complete under their name, or not there.

use std::io::ErrorKind;
use std::sync::Arc;

use super::error::{Fault, tried};
use super::frame::UNIT;
use super::group::Stamp;
use super::header::{FileHeader, Holds};
use super::position::FileName;
use super::tail::Closed;
use crate::store::file::disk::{Disk, DiskFile};

/// The end of the journal on the disk.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) stamp: Stamp,
    /// The segment that is written, by its first position.
    pub(super) segment: u64,
    pub(super) file: Box<dyn DiskFile>,
    /// Up to this offset the segment has bytes that may be overwritten.
    pub(super) zeroed: u64,
    pub(super) segment_bytes: u64,
    pub(super) ahead_bytes: u64,
    /// Everything before this is synced.
    pub(super) synced: u64,
    /// A group for which there was no room.
    pub(super) unwritten: Option<Closed>,
}

impl Writer {
    /// Writes a group and syncs it. The group may be written again if there was no room for it.
    pub(super) fn write(&mut self, closed: &mut Closed, memory: u32) -> Result<(), Fault> {
        if closed.segment != self.segment {
            let first = closed.segment;
            let (identity, synced) = (self.stamp.identity, first + UNIT as u64);
            let header = FileHeader { holds: Holds::Journal, identity, first, synced };
            let made = create_segment(&*self.disk, &header, &[], self.ahead(0))?;
            watermark(&*self.disk, first, &[self.segment])?;
            (self.file, self.zeroed, self.segment) = (made.0, made.1, first);
        }
        let (offset, end) = (closed.group.position - self.segment, closed.group.next() - self.segment);
        let bytes = closed.group.finish(self.stamp, self.synced, memory);
        let name = FileName::segment(self.segment);
        tried("write", &*self.disk, &name, self.file.write_at(offset, bytes))?;
        if end > self.zeroed {
            let ahead = (end, self.ahead(end));
            self.zeroed = zeros_ahead(&*self.disk, &name, &*self.file, ahead)?;
        }
        tried("sync", &*self.disk, &name, self.file.sync())?;
        self.synced = closed.group.next();
        Ok(())
    }

    /// How many zeros belong behind this offset.
    fn ahead(&self, end: u64) -> u64 {
        self.ahead_bytes.min(self.segment_bytes.saturating_sub(end))
    }
}

/// Zeros for [`zeros_ahead`].
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Makes a segment and makes it durable, with the group that it starts with, if any, and zeros behind that. Until then it has
/// another name, so a segment has a header whatever happens. Returns the file, and up to where it has bytes.
pub(super) fn create_segment(
    disk: &dyn Disk,
    header: &FileHeader,
    group: &[u8],
    ahead: u64,
) -> Result<(Box<dyn DiskFile>, u64), Fault> {
    let name = FileName::segment(header.first);
    let unfinished = FileName::unfinished(&name);
    let file = create_unfinished(disk, &unfinished, header)?;
    if !group.is_empty() {
        tried("write", disk, &unfinished, file.write_at(UNIT as u64, group))?;
    }
    let end = (UNIT + group.len()) as u64;
    let zeroed = zeros_ahead(disk, &unfinished, &*file, (end, ahead))?;
    tried("sync", disk, &unfinished, file.sync())?;
    tried("rename", disk, &unfinished, disk.rename(&unfinished, &name))?;
    tried("sync", disk, "", disk.sync())?;
    Ok((file, zeroed))
}

/// Notes that there is a segment, before anything in it is confirmed, so that a later opening notices if it is missing. The name is
/// all that the watermark has. The segment must be durable, and older watermarks go.
pub(super) fn watermark(disk: &dyn Disk, first: u64, older: &[u64]) -> Result<(), Fault> {
    let name = FileName::watermark(first);
    match disk.create(&name) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return tried("create", disk, &name, Err(error)),
        _ => tried("sync", disk, "", disk.sync())?,
    }
    for older in older {
        // One that is left says less than the new one, and the next opening removes it.
        let _ = disk.remove(&FileName::watermark(*older));
    }
    Ok(())
}

/// Makes a file that has only its header, in place of one of this name that was not finished.
pub(super) fn create_unfinished(
    disk: &dyn Disk,
    unfinished: &str,
    header: &FileHeader,
) -> Result<Box<dyn DiskFile>, Fault> {
    match disk.remove(unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return tried("remove", disk, unfinished, Err(error));
        }
        _ => {}
    }
    let file = tried("create", disk, unfinished, disk.create(unfinished))?;
    tried("write", disk, unfinished, file.write_at(0, &header.encode()))?;
    Ok(file)
}

/// A disk with less room than this times the zeros gets none: what is left is for what comes, such as the next start.
const ROOM: u64 = 16;

/// Writes zeros from an offset on, if there is much room: they are only faster. Returns up to where there are some.
fn zeros_ahead(disk: &dyn Disk, name: &str, file: &dyn DiskFile, (end, ahead): (u64, u64)) -> Result<u64, Fault> {
    let mut zeroed = end;
    if ahead == 0 || !matches!(disk.room(), Ok(room) if room.is_none_or(|room| room >= ROOM * ahead)) {
        return Ok(end);
    }
    while zeroed < end + ahead {
        let some = (end + ahead - zeroed).min(ZEROS.len() as u64);
        match tried("write", disk, name, file.write_at(zeroed, &ZEROS[..some as usize])) {
            Err(fault) if fault.is_full() => break,
            written => written?,
        }
        zeroed += some;
    }
    Ok(zeroed)
}
