//! Writes groups and syncs them, one at a time; and makes files: complete under their name, or not there.

use std::io::ErrorKind;
use std::sync::Arc;

use super::error::{Fault, tried};
use super::frame::UNIT;
use super::group::{Stamp, Written};
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
    /// So many bytes of the segment are durable. At least a unit of zeros is left after the last group.
    pub(super) length: u64,
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
            let header = FileHeader { holds: Holds::Journal, identity, first, synced, length: 0 };
            let made = create_segment(&*self.disk, header, &[])?;
            watermark(&*self.disk, first, &[self.segment])?;
            (self.file, self.length, self.segment) = (made.0, made.1, first);
        }
        let (offset, end) = (closed.group.position - self.segment, closed.group.next() - self.segment);
        let name = FileName::segment(self.segment);
        self.lengthen_for(&name, end)?;
        let written = Written { synced: self.synced, length: self.length };
        let bytes = closed.group.finish(self.stamp, written, memory);
        tried("write", &*self.disk, &name, self.file.write_at(offset, bytes))?;
        tried("sync", &*self.disk, &name, self.file.sync())?;
        self.synced = closed.group.next();
        Ok(())
    }

    /// Makes the segment longer, unless a unit is left after a group that ends here, and syncs that before the group is written: the
    /// group names the length, so a later opening sees whether the end of the file was cut off, which no crash does.
    fn lengthen_for(&mut self, name: &str, end: u64) -> Result<(), Fault> {
        let least = end + UNIT as u64;
        if least <= self.length {
            return Ok(());
        }
        let (from, ahead) = (end.max(self.length), self.ahead_bytes.min(self.segment_bytes.saturating_sub(end)));
        let length = write_zeros(&*self.disk, name, &*self.file, from, least, end + ahead)?;
        tried("sync", &*self.disk, name, self.file.sync())?;
        self.length = length;
        Ok(())
    }
}

/// Zeros for [`write_zeros`].
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Makes a segment and makes it durable, with the groups that it starts with, if any, and a unit of zeros after them. Until then it has
/// another name, so a segment has a header whatever happens. Returns the file and its length.
pub(super) fn create_segment(
    disk: &dyn Disk,
    header: FileHeader,
    groups: &[u8],
) -> Result<(Box<dyn DiskFile>, u64), Fault> {
    let name = FileName::segment(header.first);
    let unfinished = FileName::unfinished(&name);
    let end = (UNIT + groups.len()) as u64;
    let length = end + UNIT as u64;
    let file = create_unfinished(disk, &unfinished, &FileHeader { length, ..header })?;
    if !groups.is_empty() {
        tried("write", disk, &unfinished, file.write_at(UNIT as u64, groups))?;
    }
    tried("write", disk, &unfinished, file.write_at(end, &ZEROS[..UNIT]))?;
    tried("sync", disk, &unfinished, file.sync())?;
    tried("rename", disk, &unfinished, disk.rename(&unfinished, &name))?;
    tried("sync", disk, "", disk.sync())?;
    Ok((file, length))
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

/// A disk with less room than this times the zeros gets no more than it must: what is left is for what comes, such as the next start.
const ROOM: u64 = 16;

/// Writes zeros from an offset up to `least`, and up to `most` if there is much room: those are only faster. Returns up to where there are
/// some.
fn write_zeros(
    disk: &dyn Disk,
    name: &str,
    file: &dyn DiskFile,
    from: u64,
    least: u64,
    most: u64,
) -> Result<u64, Fault> {
    let ahead = most.saturating_sub(least);
    let has_room = matches!(disk.room(), Ok(room) if room.is_none_or(|room| room >= ROOM * ahead));
    let (mut at, end) = (from, if has_room { most.max(least) } else { least });
    while at < end {
        let stop = if at < least { least } else { end };
        let some = (stop - at).min(ZEROS.len() as u64);
        match tried("write", disk, name, file.write_at(at, &ZEROS[..some as usize])) {
            Err(fault) if fault.is_full() && at >= least => break,
            written => written?,
        }
        at += some;
    }
    Ok(at)
}
