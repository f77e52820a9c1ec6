//! Reads what is sound of a journal that an opening refuses, and says what is not.

use std::collections::VecDeque;
use std::error::Error;

use super::appending::Journal;
use super::error::{OpenError, path_of};
use super::files::{Files, Snapshot};
use super::frame::{END, FIRST_OWN_KIND, FRAME_HEADER, NAME, RESERVATION, RawFrame, TopicNumber, split_frame};
use super::group::{GROUP_HEADER, MOST_GROUP};
use super::groups::{Groups, Next};
use super::header::{FileHeader, HEADER, Holds};
use super::position::{FileName, Position};
use super::replay::{Frame, Origin};
use super::topics::Topics;
use crate::store::file::disk::Disk;

/// A range of a file that is not sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound {
    /// The path of the file.
    pub file: String,
    /// From this offset on.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What was found there.
    pub what: String,
}

/// What was found of a damaged journal.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// How many frames were given to the callback.
    pub frames: u64,
    /// The highest reservation.
    pub reserved: u64,
    /// What is not sound, in the order of the journal.
    pub unsound: Vec<Unsound>,
}

impl Journal {
    /// Gives every sound frame to `apply`, whatever is damaged or missing before it: those of the newest sound snapshot, then those
    /// of the journal since it began, with the sound ones of later snapshots at their place. Changes nothing.
    ///
    /// # Errors
    /// [`OpenError`] if the disk refuses, or if a file is of another version or of another program.
    pub fn salvage<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: &dyn Disk,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<Salvaged, OpenError> {
        let files = Files::list(disk)?;
        let mut names = Topics::default();
        // A file may lack the name of a topic that another one has.
        Walk::new(disk, &files)?.run(&mut |_, frame, _| {
            if frame.raw.kind == NAME
                && let Ok(name) = std::str::from_utf8(frame.raw.bytes)
                && frame.raw.topic != TopicNumber::NONE
            {
                names.learn(frame.raw.topic, name);
            }
            Ok(())
        })?;
        let mut frames = 0;
        let mut walk = Walk::new(disk, &files)?;
        walk.run(&mut |position, Given { raw, origin }, salvaged| {
            match raw.kind {
                RESERVATION => {
                    let number = raw.bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
                    salvaged.reserved = salvaged.reserved.max(number);
                    return Ok(());
                }
                kind if kind >= FIRST_OWN_KIND => return Ok(()),
                _ => {}
            }
            let name = match raw.topic {
                TopicNumber::NONE => "",
                topic => names.name(topic).ok_or("the name of its topic is lost")?,
            };
            frames += 1;
            let frame = Frame { topic: raw.topic, name, kind: raw.kind, bytes: raw.bytes, origin };
            apply(position, frame).map_err(|error| error.into().to_string())
        })?;
        Ok(Salvaged { frames, ..walk.salvaged })
    }
}

/// A sound frame.
struct Given<'a> {
    raw: RawFrame<'a>,
    origin: Origin,
}

/// Takes the sound frames. An error says why one is of no use.
type Take<'a> = dyn FnMut(Position, Given<'_>, &mut Salvaged) -> Result<(), String> + 'a;

/// Goes through the files of a directory.
struct Walk<'a> {
    disk: &'a dyn Disk,
    identity: Option<u64>,
    /// Where the newest sound snapshot began.
    base: u64,
    /// The snapshots that were not read yet.
    snapshots: VecDeque<u64>,
    segments: &'a [u64],
    /// The newest segment by its watermark.
    newest_marked: Option<u64>,
    salvaged: Salvaged,
}

impl<'a> Walk<'a> {
    fn new(disk: &'a dyn Disk, files: &'a Files) -> Result<Self, OpenError> {
        let mut sound = None;
        for begin in files.snapshots.iter().rev() {
            match Snapshot::check(disk, *begin) {
                Ok(snapshot) => {
                    sound = Some(snapshot);
                    break;
                }
                Err(OpenError::Damaged { .. } | OpenError::Foreign { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let base = sound.as_ref().map_or(0, |snapshot| snapshot.begin);
        let snapshots = files.snapshots.iter().copied().filter(|begin| *begin >= base).collect();
        let segments = files.segments_from(base).unwrap_or(&files.segments);
        let (identity, newest_marked) = (sound.map(|snapshot| snapshot.identity), files.watermarks.last().copied());
        Ok(Self { disk, identity, base, snapshots, segments, newest_marked, salvaged: Salvaged::default() })
    }

    fn run(&mut self, take: &mut Take<'_>) -> Result<(), OpenError> {
        if self.snapshots.front() == Some(&self.base) {
            self.next_snapshot(take)?;
        }
        let mut end = self.base;
        for (index, first) in self.segments.iter().enumerate() {
            self.missing(end, *first);
            end = self.segment(*first, self.segments.get(index + 1).copied(), take)?;
        }
        while !self.snapshots.is_empty() {
            self.next_snapshot(take)?;
        }
        if let Some(newest_marked) = self.newest_marked {
            let newest = self.segments.last().copied();
            if newest.is_none_or(|newest| newest < newest_marked) {
                self.unsound(&FileName::segment(newest_marked), 0, 0, "the newest segments are missing");
            }
        }
        Ok(())
    }

    /// Notes a hole between two segments.
    fn missing(&mut self, end: u64, next: u64) {
        if end < next {
            self.unsound(&FileName::segment(end), 0, next - end, "the journal is missing from here on");
        }
    }

    fn unsound(&mut self, name: &str, offset: u64, bytes: u64, what: &str) {
        let file = path_of(self.disk, name);
        self.salvaged.unsound.push(Unsound { file, offset, bytes, what: what.to_owned() });
    }

    /// Opens a file, even if its header is damaged or that of another journal: then its groups tell whether it is of this one.
    fn open(&mut self, holds: Holds, first: u64) -> Result<Groups, OpenError> {
        let (file, what) = match Groups::open(self.disk, holds, first) {
            Ok(opened) if opened.header.identity == *self.identity.get_or_insert(opened.header.identity) => {
                return Ok(opened);
            }
            Ok(other) => (other.path, "its header is of another journal".to_owned()),
            Err(OpenError::Damaged { file, what, .. } | OpenError::Foreign { file, what }) => (file, what),
            Err(error) => return Err(error),
        };
        self.salvaged.unsound.push(Unsound { file, offset: 0, bytes: HEADER as u64, what });
        let like = FileHeader { holds, identity: 0, first, synced: first };
        let opened = Groups::open_without_header(self.disk, like, self.identity)?;
        if opened.header.identity != 0 {
            self.identity = Some(opened.header.identity);
        }
        Ok(opened)
    }

    fn next_snapshot(&mut self, take: &mut Take<'_>) -> Result<(), OpenError> {
        let Some(begin) = self.snapshots.pop_front() else { return Ok(()) };
        let mut file = self.open(Holds::Snapshot, begin)?;
        let end = file.length;
        let read = self.groups(&mut file, end, &mut |walk, position, raw| {
            walk.give(take, position, raw, Origin::Snapshot)
        })?;
        if !read.has_end {
            self.unsound(&FileName::snapshot(begin), read.offset, 0, "the end of the snapshot is missing");
        }
        Ok(())
    }

    /// Reads a segment, and returns the position where it ends.
    fn segment(&mut self, first: u64, next: Option<u64>, take: &mut Take<'_>) -> Result<u64, OpenError> {
        let mut file = self.open(Holds::Journal, first)?;
        let end = file.length.min(next.map_or(u64::MAX, |next| next - first));
        let read = self.groups(&mut file, end, &mut |walk, position, raw| {
            while walk.snapshots.front().is_some_and(|begin| *begin < position) {
                walk.next_snapshot(take)?;
            }
            if position > walk.base { walk.give(take, position, raw, Origin::During) } else { Ok(None) }
        })?;
        Ok(first + read.offset)
    }

    fn give(
        &mut self,
        take: &mut Take<'_>,
        position: u64,
        raw: RawFrame<'_>,
        origin: Origin,
    ) -> Result<Option<String>, OpenError> {
        Ok(take(Position(position), Given { raw, origin }, &mut self.salvaged).err())
    }

    /// Gives the sound frames of a file up to an offset, and notes what is not sound.
    fn groups(&mut self, file: &mut Groups, end: u64, give: &mut Give<'_, 'a>) -> Result<Read, OpenError> {
        let mut read = Read { offset: file.offset, has_end: false };
        while file.offset < end {
            let offset = file.offset;
            match file.next()? {
                Next::Group(..) => {
                    let length = file.offset - offset;
                    self.frames(file, offset, length, &mut read, give)?;
                    read.offset = file.offset;
                }
                Next::Nothing { .. } => {
                    let later = file.later_header(offset, |_| true)?;
                    let stop = later.unwrap_or(end).min(end);
                    let bytes = file.bytes_behind(offset)?.min(stop - offset);
                    if bytes == 0 {
                        // Zeros that were written ahead.
                        break;
                    }
                    let sound = self.frames(file, offset, stop - offset, &mut read, give)?;
                    let what = format!("there is no sound group; {sound} frames of it are sound");
                    self.salvaged.unsound.push(Unsound { file: file.path.clone(), offset, bytes, what });
                    file.offset = stop;
                    read.offset = stop;
                }
            }
        }
        Ok(read)
    }

    /// Gives the sound frames of a group, or of what is left of one. Returns how many there are.
    fn frames(
        &mut self,
        file: &mut Groups,
        offset: u64,
        length: u64,
        read: &mut Read,
        give: &mut Give<'_, 'a>,
    ) -> Result<u64, OpenError> {
        let (first, path) = (file.header.first, file.path.clone());
        let most = usize::try_from(length).unwrap_or(usize::MAX).min(MOST_GROUP + GROUP_HEADER);
        let body = file.bytes(offset, most)?.get(GROUP_HEADER..).unwrap_or_default();
        let (mut rest, mut sound) = (body, 0);
        while let Some((frame, after)) = split_frame(rest) {
            let at = (body.len() - rest.len()) as u64;
            if frame.is_sound(rest) {
                sound += 1;
                read.has_end |= frame.kind == END;
                let frame_end = offset + GROUP_HEADER as u64 + at + (FRAME_HEADER + frame.bytes.len()) as u64;
                if let Some(what) = give(self, first + frame_end, frame)? {
                    let bytes = (FRAME_HEADER + frame.bytes.len()) as u64;
                    let offset = offset + GROUP_HEADER as u64 + at;
                    self.salvaged.unsound.push(Unsound { file: path.clone(), offset, bytes, what });
                }
            }
            rest = after;
        }
        Ok(sound)
    }
}

/// Takes a sound frame at its position. Returns why it is of no use, if it is not.
type Give<'f, 'a> = dyn FnMut(&mut Walk<'a>, u64, RawFrame<'_>) -> Result<Option<String>, OpenError> + 'f;

/// What was read of a file.
struct Read {
    /// The end of the last group.
    offset: u64,
    /// Whether the frame was there that ends a snapshot.
    has_end: bool,
}
