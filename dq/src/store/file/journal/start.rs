//! Where writing goes on after an opening.

use std::mem;

use super::error::{Fault, OpenError, tried};
use super::files::Files;
use super::frame::{NAME, RESERVATION, UNIT, frame_header, u64_at};
use super::group::{GroupHeader, Stamp, Written, frames};
use super::groups::Groups;
use super::header::{FileHeader, Holds};
use super::options::Options;
use super::position::FileName;
use super::recover::Last;
use super::replay::Replay;
use super::tail::Tail;
use super::topics::Topics;
use super::writer::{create_segment, watermark};
use crate::store::file::disk::{Access, Disk, DiskFile};

/// The segment that is written next.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) header: FileHeader,
    pub(super) file: Box<dyn DiskFile>,
    /// So many bytes of the file are durable.
    pub(super) length: u64,
    /// The position where the next group comes.
    pub(super) end: u64,
    pub(super) tail: Tail,
}

impl Start {
    /// Makes the first segment of a journal.
    pub(super) fn new_journal(disk: &dyn Disk, files: &Files, options: &Options) -> Result<Self, Fault> {
        remove_all(disk, &files.unfinished)?;
        let header = FileHeader { holds: Holds::Journal, identity: options.identity, first: 0, synced: 0, length: 0 };
        let tail = Tail::new(options.segment_bytes, 0, 0, true, Topics::default(), 0);
        let start = Self::segment(disk, header, tail, 0)?;
        watermark(disk, 0, &[])?;
        Ok(start)
    }

    /// Continues the last segment if all of it is known to be durable and nothing must be cut. Else makes a
    /// new one: with the frames of the last group, if only the memory of the system may have them, in place of the torn tail, or of
    /// the seal. Then removes what an interrupted snapshot or removal left.
    pub(super) fn after(
        disk: &dyn Disk,
        files: &Files,
        last: &mut Last,
        replay: &mut Replay,
        options: &Options,
    ) -> Result<Self, OpenError> {
        remove_all(disk, &files.unfinished)?;
        let header = last.file.header;
        // A snapshot is complete only after a sync of the journal up to its end.
        let durable = header.synced.max(replay.snapshot_end());
        let unknown = last.group.filter(|(offset, _)| header.first + offset >= durable);
        let topics = mem::take(&mut replay.topics);
        let mut start = if unknown.is_some() || last.torn.is_some() {
            let first = header.first + unknown.map_or(last.file.offset, |(offset, _)| offset);
            // All of it comes into one segment.
            let mut tail = Tail::new(u64::MAX, header.first, first, true, topics, replay.reserved);
            if let Some((offset, group)) = unknown.filter(|_| !replay.is_sealed) {
                append_again(&mut last.file, offset, &group, &mut tail)?;
            }
            Self::segment(disk, FileHeader { first, ..header }, tail, replay.memory)?
        } else {
            let tail = Tail::new(options.segment_bytes, header.first, last.end(), false, topics, replay.reserved);
            Self::in_place(disk, last, tail)?
        };
        start.tail.limit_segments(options.segment_bytes);
        start.tail.count_frames(replay.frame_bytes);
        let newest = start.header.first;
        let older: Vec<u64> = files.watermarks.iter().copied().filter(|marked| *marked != newest).collect();
        if !older.is_empty() || files.watermarks.is_empty() {
            watermark(disk, newest, &older)?;
        }
        if remove_all(disk, &files.replaced_by(replay.begin))? {
            tried("sync", disk, "", disk.sync())?;
        }
        Ok(start)
    }

    fn in_place(disk: &dyn Disk, last: &Last, tail: Tail) -> Result<Self, Fault> {
        let (header, end) = (last.file.header, last.end());
        let name = FileName::segment(header.first);
        let file = tried("open", disk, &name, disk.open(&name, Access::Write))?;
        // The names of the segment and of the snapshot may be in memory only.
        tried("sync", disk, "", disk.sync())?;
        Ok(Self { header, file, length: last.file.durable_length, end, tail })
    }

    /// Makes a segment with all that was appended again.
    fn segment(disk: &dyn Disk, header: FileHeader, mut tail: Tail, memory: u32) -> Result<Self, Fault> {
        let (mut groups, mut end) = (Vec::new(), header.first + UNIT as u64);
        while let Some(mut closed) = tail.take() {
            // The header of the file has its length.
            let written = Written { synced: header.first, length: 0 };
            groups.extend_from_slice(closed.group.finish(Stamp::of(Holds::Journal, header.identity), written, memory));
            end = closed.group.next();
        }
        let header = FileHeader { synced: end, ..header };
        let (file, length) = create_segment(disk, header, &groups)?;
        Ok(Self { header, file, length, end, tail })
    }
}

/// Appends the frames of a group again.
fn append_again(file: &mut Groups, offset: u64, group: &GroupHeader, tail: &mut Tail) -> Result<(), Fault> {
    for (_, frame) in frames(file.body(offset, group)?) {
        match frame.kind {
            NAME => {}
            RESERVATION => drop(tail.reserve(u64_at(frame.bytes, 0))),
            _ => drop(tail.push(frame.topic, &frame_header(frame.topic, frame.kind, frame.bytes), frame.bytes)),
        }
    }
    Ok(())
}

/// Removes files. Returns whether there were any.
fn remove_all(disk: &dyn Disk, names: &[String]) -> Result<bool, Fault> {
    for name in names {
        tried("remove", disk, name, disk.remove(name))?;
    }
    Ok(!names.is_empty())
}
