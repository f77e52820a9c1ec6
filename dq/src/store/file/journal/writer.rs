//! Writes groups and syncs them, one at a time.

use std::sync::Arc;

use super::fault::{Doing, Fault};
use super::group::Stamp;
use super::header::{FileHeader, Holds};
use super::layout::SECTOR;
use super::position::FileName;
use super::segment::{create_segment, zeros_ahead};
use super::tail::Closed;
use super::versions::FORMAT;
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
            let first = closed.segment;
            let (content, identity, synced) = (self.content, self.stamp.identity, first + SECTOR as u64);
            let header = FileHeader { format: FORMAT, holds: Holds::Journal, content, identity, first, synced };
            (self.file, self.zeroed) = create_segment(&*self.disk, &header, &[], self.ahead(0))?;
            self.segment = first;
        }
        let (offset, end) = (closed.group.position - self.segment, closed.group.next() - self.segment);
        let bytes = closed.group.finish(self.stamp, self.synced);
        let name = FileName::segment(self.segment);
        Doing::Write.fault(&*self.disk, &name, self.file.write_at(offset, bytes))?;
        if end > self.zeroed {
            let ahead = (end, self.ahead(end));
            self.zeroed = zeros_ahead(&*self.disk, &name, &*self.file, ahead)?;
        }
        Doing::Sync.fault(&*self.disk, &name, self.file.sync())?;
        self.synced = closed.group.next();
        Ok(())
    }

    /// How many zeros belong behind this offset.
    fn ahead(&self, end: u64) -> u64 {
        self.ahead_bytes.min(self.segment_bytes.saturating_sub(end))
    }
}
