//! Reads a directory back: the newest sound snapshot, then the journal from where it began.

use super::error::OpenError;
use super::files::Files;
use super::group::GroupHeader;
use super::groups::{Groups, Next};
use super::header::Holds;
use super::position::{FileName, Position};
use super::replay::{Apply, Replay};
use crate::store::file::disk::Disk;

/// What was found when a journal was opened.
#[derive(Debug)]
pub struct Recovered {
    /// Where the journal goes on.
    pub end: Position,
    /// Whether there was no journal yet.
    pub is_new: bool,
    /// Whether the journal was closed cleanly.
    pub is_sealed: bool,
    /// What was cut from the end: a group that was being written when the process or the machine stopped.
    pub torn: Option<Torn>,
    /// The positions where the snapshot began and ended, if there was one.
    pub snapshot: Option<(Position, Position)>,
    /// The last reservation; 0 if there was none.
    pub reserved: u64,
    /// How many segments there are, and the bytes of their files, with the zeros behind the groups.
    pub segments: (usize, u64),
    /// How many frames were given to the callback.
    pub frames: u64,
}

/// What was cut from the end of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The path of the file.
    pub file: String,
    /// From this offset on.
    pub offset: u64,
    /// How many bytes, up to the last that is not zero.
    pub bytes: u64,
}

/// The end of the journal that was found.
#[derive(Debug)]
pub(super) struct Last {
    /// The last segment, at the offset where the next group comes.
    pub(super) file: Groups,
    /// Its last group, and the offset of that.
    pub(super) group: Option<(u64, GroupHeader)>,
    pub(super) torn: Option<Torn>,
}

impl Last {
    /// The position where the next group comes.
    pub(super) const fn end(&self) -> u64 {
        self.file.position(self.file.offset)
    }
}

/// What else is done with each file that was read up to its offset.
pub(super) type Visit<'a> = dyn FnMut(&mut Groups) -> Result<(), OpenError> + 'a;

/// Reads all frames. [`None`] if there is no journal.
pub(super) fn recover(
    disk: &dyn Disk,
    files: &Files,
    replay: &mut Replay,
    apply: &mut Apply<'_>,
    visit: &mut Visit<'_>,
) -> Result<Option<Last>, OpenError> {
    if let Some(watermark) = files.lacks_segments() {
        let what = format!("by {} the journal came to it", FileName::watermark(watermark));
        return Err(OpenError::Missing { path: disk.path(), file: FileName::segment(watermark), what });
    }
    if files.segments.is_empty() && files.snapshots.is_empty() {
        return Ok(None);
    }
    let mut identity = None;
    if let Some(begin) = newest_snapshot(disk, files)? {
        let mut file = read_snapshot(disk, begin, replay, apply)?;
        (identity, replay.snapshot_bytes) = (Some(file.header.identity), file.length);
        visit(&mut file)?;
    }
    let segments = files.segments_from(replay.begin).unwrap_or_default();
    let mut last = None;
    for (index, first) in segments.iter().enumerate() {
        let file = Groups::open(disk, Holds::Journal, *first)?;
        if *identity.get_or_insert(file.header.identity) != file.header.identity {
            let what = "it has the identity of another journal".to_owned();
            return Err(OpenError::Foreign { file: file.path, what });
        }
        let next = segments.get(index + 1).copied();
        let mut read = read_segment(file, next, replay, apply)?;
        if let Some(next) = next {
            check_gap(disk, read.end(), next)?;
        }
        visit(&mut read.file)?;
        last = Some(read);
    }
    let last = last.expect("the choice of a snapshot includes the segments");
    if last.end() < replay.snapshot_end() {
        let what =
            format!("it ends at position {}, but the snapshot needs it up to {}", last.end(), replay.snapshot_end());
        return last.file.damaged(last.file.offset, what);
    }
    Ok(Some(last))
}

/// Where the newest snapshot began, which must be sound: it was durable before it got its name, and what it replaces is gone or goes. `None`
/// if the journal has its beginning. There are segments from where it began.
fn newest_snapshot(disk: &dyn Disk, files: &Files) -> Result<Option<u64>, OpenError> {
    let newest = files.snapshots.last().copied();
    if newest.is_some_and(|begin| files.segments_from(begin).is_some()) {
        return Ok(newest);
    }
    if files.segments.first() == Some(&0) {
        return Ok(None);
    }
    let what = match newest {
        Some(begin) => format!("{} needs the journal from there on", FileName::snapshot(begin)),
        None => "no snapshot replaces the start of the journal".to_owned(),
    };
    Err(OpenError::Missing { path: disk.path(), file: FileName::segment(newest.unwrap_or(0)), what })
}

/// Reads a snapshot, which must be whole: every group, and as many frames as its end says.
pub(super) fn read_snapshot(
    disk: &dyn Disk,
    begin: u64,
    replay: &mut Replay,
    apply: &mut Apply<'_>,
) -> Result<Groups, OpenError> {
    let mut file = Groups::open(disk, Holds::Snapshot, begin)?;
    replay.start_file(&file.header);
    let mut frames = 0;
    while file.offset < file.length {
        if replay.end.is_some() {
            return file.damaged(file.offset, "there is more after the end of the snapshot");
        }
        match file.next()? {
            Next::Group(offset, header) => {
                replay.group(&mut file, offset, &header, apply)?;
                frames += u64::from(header.frames);
            }
            Next::Nothing { at, .. } => return file.damaged(at, "there is no sound group"),
        }
    }
    match replay.end {
        Some(end) if end.frames == frames - 1 && end.position >= begin && file.offset == file.length => Ok(file),
        Some(_) => file.damaged(file.offset, "its end does not fit what is before it"),
        None => file.damaged(file.offset, "its end is missing"),
    }
}

/// Reads a segment up to its end: where the next one starts, or the first bytes that are no group and that no later group names as
/// synced.
fn read_segment(
    mut file: Groups,
    next: Option<u64>,
    replay: &mut Replay,
    apply: &mut Apply<'_>,
) -> Result<Last, OpenError> {
    replay.start_file(&file.header);
    let (mut group, mut torn) = (None, None);
    while file.offset < file.length && next.is_none_or(|next| file.position(file.offset) < next) {
        match file.next()? {
            Next::Group(offset, header) => {
                replay.group(&mut file, offset, &header, apply)?;
                group = Some((offset, header));
            }
            Next::Nothing { at, later } => {
                if let Some(next) = next {
                    if file.bytes_behind(file.offset)? == 0 {
                        // It ends here, before the next one starts.
                        break;
                    }
                    let what = format!("by the next segment everything before position {next} was synced");
                    return file.damaged(at, format!("there is no sound group, but {what}"));
                }
                file.must_be_torn(at, later)?;
                let offset = file.offset;
                let bytes = file.bytes_behind(offset)?;
                torn = (bytes > 0).then(|| Torn { file: file.path.clone(), offset, bytes });
                break;
            }
        }
    }
    if next.is_none() {
        file.must_be_whole()?;
    }
    Ok(Last { file, group, torn })
}

/// Checks that a segment ends where the next one starts.
fn check_gap(disk: &dyn Disk, end: u64, next: u64) -> Result<(), OpenError> {
    if end == next {
        return Ok(());
    }
    let what = format!("the next segment starts at {next}");
    Err(OpenError::Missing { path: disk.path(), file: FileName::segment(end), what })
}
