//! Writes groups and syncs them, one at a time.

use std::sync::Arc;

use super::fault::{Doing, Fault};
use super::group::Stamp;
use super::layout::SECTOR;
use super::position::FileName;
use super::segment::{create_segment, write_zeros};
use super::tail::Closed;
use crate::store::file::disk::{Disk, DiskFile};

/// The end of the journal on the disk.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) stamp: Stamp,
    pub(super) content: u32,
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
    pub(super) fn write(&mut self, closed: &mut Closed) -> Result<(), Fault> {
        if closed.segment != self.segment {
            let ahead = self.ahead(0);
            let parts = (self.content, self.stamp.identity, closed.segment);
            self.file = create_segment(&*self.disk, parts, ahead)?;
            (self.segment, self.zeroed) = (closed.segment, SECTOR as u64 + ahead);
        }
        let (offset, end) = (closed.group.position - self.segment, closed.group.next() - self.segment);
        let bytes = closed.group.finish(self.stamp, self.synced);
        let name = FileName::segment(self.segment);
        Doing::Write.fault(&*self.disk, &name, self.file.write_at(offset, bytes))?;
        self.write_ahead(end)?;
        Doing::Sync.fault(&*self.disk, &name, self.file.sync())?;
        self.synced = closed.group.next();
        Ok(())
    }

    /// How many zeros belong behind this offset.
    fn ahead(&self, end: u64) -> u64 {
        self.ahead_bytes.min(self.segment_bytes.saturating_sub(end))
    }

    /// Writes the next zeros, once the group has reached the end of the last ones.
    fn write_ahead(&mut self, end: u64) -> Result<(), Fault> {
        if end <= self.zeroed {
            return Ok(());
        }
        let ahead = self.ahead(end);
        let zeros = write_zeros(&*self.file, end, ahead);
        match Doing::Write.fault(&*self.disk, &FileName::segment(self.segment), zeros) {
            // The group itself has its room, and zeros are only faster.
            Err(fault) if fault.is_full() => self.zeroed = end,
            result => {
                result?;
                self.zeroed = end + ahead;
            }
        }
        Ok(())
    }
}
