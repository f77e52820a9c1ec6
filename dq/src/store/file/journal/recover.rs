//! Reads a directory back: the newest sound snapshot, then the journal from where it began.

use super::error::{OpenError, path_of};
use super::files::{Files, Snapshot};
use super::frame::TopicNumber;
use super::group::GroupHeader;
use super::groups::{Groups, Next};
use super::header::{FileHeader, Holds};
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
    /// The topics of these files.
    pub topics: Vec<(TopicNumber, String)>,
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
    /// Of the last segment.
    pub(super) header: FileHeader,
    /// Where the next group comes.
    pub(super) offset: u64,
    /// The last group of that segment, and its offset.
    pub(super) group: Option<(u64, GroupHeader)>,
    pub(super) torn: Option<Torn>,
}

impl Last {
    /// The position where the next group comes.
    pub(super) const fn end(&self) -> u64 {
        self.header.first + self.offset
    }
}

/// All that a recovery found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) snapshot: Option<Snapshot>,
    pub(super) last: Last,
}

/// What else is done with each file that was read, up to an offset.
pub(super) type Visit<'a> = dyn FnMut(&mut Groups, u64) -> Result<(), OpenError> + 'a;

/// Reads all frames. [`None`] if there is no journal.
pub(super) fn recover(
    disk: &dyn Disk,
    files: &Files,
    (replay, apply): (&mut Replay, &mut Apply<'_>),
    visit: &mut Visit<'_>,
) -> Result<Option<Found>, OpenError> {
    if let Some(watermark) = files.lacks_segments() {
        let what = format!("{} says that the journal came to it", FileName::watermark(watermark));
        return Err(OpenError::Missing { path: disk.path(), file: FileName::segment(watermark), what });
    }
    if files.segments.is_empty() && files.snapshots.is_empty() {
        return Ok(None);
    }
    let snapshot = newest_snapshot(disk, files)?;
    let mut identity = None;
    if let Some(snapshot) = &snapshot {
        (replay.begin, replay.end) = (snapshot.begin, snapshot.end);
        identity = Some(snapshot.identity);
        visit(&mut read_snapshot(disk, snapshot.begin, (&mut *replay, &mut *apply))?, snapshot.bytes)?;
    }
    let segments = files.segments_from(replay.begin).unwrap_or_default();
    let mut last = None;
    for (index, first) in segments.iter().enumerate() {
        let mut file = Groups::open(disk, Holds::Journal, *first)?;
        if *identity.get_or_insert(file.header.identity) != file.header.identity {
            let what = "its identity is that of another journal".to_owned();
            return Err(OpenError::Foreign { file: file.path, what });
        }
        let next = segments.get(index + 1).copied();
        let end = read_segment(&mut file, next, (&mut *replay, &mut *apply))?;
        if let Some(next) = next {
            check_gap(disk, first + end.offset, next)?;
        }
        visit(&mut file, end.offset)?;
        last = Some(end);
    }
    let last = last.expect("the choice of a snapshot includes that of segments");
    if last.end() < replay.end {
        let (file, offset) = (path_of(disk, &FileName::segment(last.header.first)), last.offset);
        let what = format!("it ends at position {}, but the snapshot needs it up to {}", last.end(), replay.end);
        return Err(OpenError::Damaged { file, offset, what });
    }
    Ok(Some(Found { snapshot, last }))
}

/// The newest snapshot, which must be sound: it was durable before it got its name, and what it replaces is gone or goes. `None` if the
/// journal has its beginning. There are segments from where it began.
fn newest_snapshot(disk: &dyn Disk, files: &Files) -> Result<Option<Snapshot>, OpenError> {
    let newest = files.snapshots.last().copied();
    if let Some(begin) = newest.filter(|begin| files.segments_from(*begin).is_some()) {
        return Snapshot::check(disk, begin).map(Some);
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

fn read_snapshot(
    disk: &dyn Disk,
    begin: u64,
    (replay, apply): (&mut Replay, &mut Apply<'_>),
) -> Result<Groups, OpenError> {
    let mut file = Groups::open(disk, Holds::Snapshot, begin)?;
    replay.start_file();
    while file.offset < file.length {
        match file.next()? {
            Next::Group(offset, header) => replay.group(&mut file, (offset, &header), apply)?,
            Next::Nothing { at, .. } => return file.damaged(at, "it changed while it was read"),
        }
    }
    Ok(file)
}

/// Reads a segment up to its end: where the next one starts, or the first bytes that are no group and that no later group names as
/// synced.
fn read_segment(
    file: &mut Groups,
    next: Option<u64>,
    (replay, apply): (&mut Replay, &mut Apply<'_>),
) -> Result<Last, OpenError> {
    replay.start_file();
    let mut group = None;
    let is_over = |file: &Groups| next.is_some_and(|next| file.position(file.offset) >= next);
    while !is_over(file) && file.offset < file.length {
        match file.next()? {
            Next::Group(offset, header) => {
                replay.group(file, (offset, &header), apply)?;
                group = Some((offset, header));
            }
            Next::Nothing { at, later } => {
                if let Some(next) = next {
                    let what = format!("the next segment says that everything before position {next} was synced");
                    return file.damaged(at, format!("there is no sound group, but {what}"));
                }
                file.must_be_torn(at, later)?;
                let offset = file.offset;
                let bytes = file.bytes_behind(offset)?;
                let torn = (bytes > 0).then(|| Torn { file: file.path.clone(), offset, bytes });
                return Ok(Last { header: file.header, offset, group, torn });
            }
        }
    }
    Ok(Last { header: file.header, offset: file.offset, group, torn: None })
}

/// Checks that a segment ends where the next one starts.
fn check_gap(disk: &dyn Disk, end: u64, next: u64) -> Result<(), OpenError> {
    if end == next {
        return Ok(());
    }
    let what = format!("the next segment starts at {next}");
    Err(OpenError::Missing { path: disk.path(), file: FileName::segment(end), what })
}
