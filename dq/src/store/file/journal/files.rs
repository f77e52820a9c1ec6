//! Which files of the directory a recovery needs.

use super::error::{OpenError, path_of, tried};
use super::position::FileName;
use crate::store::file::disk::Disk;

/// How often a directory is listed again, at most, until two listings have the same files.
const LISTINGS: usize = 20;

/// The journal's files in a directory, oldest first.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) segments: Vec<u64>,
    /// The bytes of all segments, with the zeros behind their groups.
    pub(super) segment_bytes: u64,
    pub(super) snapshots: Vec<u64>,
    /// The bytes of the newest snapshot.
    pub(super) snapshot_bytes: u64,
    /// The segments that were durable when their watermarks were made.
    pub(super) watermarks: Vec<u64>,
    pub(super) unfinished: Vec<String>,
}

impl Files {
    pub(super) fn list(disk: &dyn Disk) -> Result<Self, OpenError> {
        let mut files = Self::list_once(disk)?;
        // Of what a process makes meanwhile a listing may have the later file and lack the earlier one.
        for _ in 0..LISTINGS {
            let before = std::mem::replace(&mut files, Self::list_once(disk)?);
            if before.has_files_of(&files) {
                break;
            }
        }
        Ok(files)
    }

    fn has_files_of(&self, other: &Self) -> bool {
        self.segments == other.segments && self.snapshots == other.snapshots && self.watermarks == other.watermarks
    }

    /// The newest watermark, if its segment and all later ones are missing.
    pub(super) fn lacks_segments(&self) -> Option<u64> {
        self.watermarks.last().copied().filter(|watermark| self.segments.last().is_none_or(|newest| newest < watermark))
    }

    fn list_once(disk: &dyn Disk) -> Result<Self, OpenError> {
        let mut files = Self::default();
        for entry in tried("list", disk, "", disk.list())? {
            match FileName::of(&entry.name) {
                FileName::Segment(first) => {
                    files.segments.push(first);
                    files.segment_bytes += entry.bytes;
                }
                FileName::Snapshot(begin) => {
                    if files.snapshots.iter().all(|older| *older < begin) {
                        files.snapshot_bytes = entry.bytes;
                    }
                    files.snapshots.push(begin);
                }
                FileName::Watermark(first) => files.watermarks.push(first),
                FileName::Unfinished => files.unfinished.push(entry.name),
                FileName::Foreign => {
                    let what = "its name starts like one of dq's and is none".to_owned();
                    return Err(OpenError::Foreign { file: path_of(disk, &entry.name), what });
                }
                FileName::Other => {}
            }
        }
        files.segments.sort_unstable();
        files.snapshots.sort_unstable();
        files.watermarks.sort_unstable();
        Ok(files)
    }

    /// The segments that have the journal from `begin` on, if one has it.
    pub(super) fn segments_from(&self, begin: u64) -> Option<&[u64]> {
        let after = self.segments.partition_point(|first| *first <= begin);
        (after > 0).then(|| &self.segments[after - 1..])
    }

    /// The files that a sound and durable snapshot replaces: older snapshots, then segments that end before it began, each oldest
    /// first.
    pub(super) fn replaced_by(&self, begin: u64) -> Vec<String> {
        let snapshots = self.snapshots.iter().filter(|older| **older < begin).map(|older| FileName::snapshot(*older));
        let kept = self.segments_from(begin).map_or(0, <[u64]>::len);
        let segments = &self.segments[..self.segments.len() - kept];
        // Without a segment to keep, none is known to be replaced.
        let segments = segments.iter().filter(|_| kept > 0).map(|first| FileName::segment(*first));
        snapshots.chain(segments).collect()
    }
}
