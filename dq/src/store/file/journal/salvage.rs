//! Reads what is sound of a journal that an opening refuses, and says what is not.

use std::error::Error;

use super::appending::Journal;
use super::error::{OpenError, path_of};
use super::files::Files;
use super::frame::{FRAME_HEADER, split_frame};
use super::group::{GROUP_HEADER, MAX_GROUP};
use super::groups::{Groups, Next};
use super::header::{FileHeader, HEADER, Holds};
use super::position::{FileName, Position};
use super::recover::read_snapshot;
use super::replay::{Apply, Frame, Replay};
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
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        // A file may lack the name of a topic that another one has.
        let names = Walk::new(disk, &files, Topics::default()).run(&mut |_, _| Ok(()))?.replay.topics;
        let Walk { replay, unsound, .. } = Walk::new(disk, &files, names).run(&mut apply)?;
        Ok(Salvaged { frames: replay.frames, reserved: replay.reserved, unsound })
    }
}

/// Goes through the files of a directory.
struct Walk<'a> {
    disk: &'a dyn Disk,
    files: &'a Files,
    identity: Option<u64>,
    /// The snapshots that were not read yet: the newest sound one, and the later ones.
    snapshots: &'a [u64],
    replay: Replay,
    unsound: Vec<Unsound>,
}

impl<'a> Walk<'a> {
    fn new(disk: &'a dyn Disk, files: &'a Files, names: Topics) -> Self {
        let (snapshots, replay) = (&*files.snapshots, Replay::with_gaps(names));
        Self { disk, files, identity: None, snapshots, replay, unsound: Vec::new() }
    }

    fn run(mut self, apply: &mut Apply<'_>) -> Result<Self, OpenError> {
        let mut end = 0;
        if let Some((at, sound)) = self.newest_sound()? {
            (self.identity, self.snapshots, end) = (Some(sound.identity), &self.snapshots[at..], sound.first);
            self.snapshots_before(end + 1, apply)?;
        }
        let segments = self.files.segments_from(end).unwrap_or(&self.files.segments);
        for (index, first) in segments.iter().enumerate() {
            if end < *first {
                self.note(&FileName::segment(end), 0, first - end, "the journal is missing from here on");
            }
            end = self.segment(*first, segments.get(index + 1).copied(), apply)?;
        }
        self.snapshots_before(u64::MAX, apply)?;
        if let Some(newest) = self.files.lacks_segments() {
            self.note(&FileName::segment(newest), 0, 0, "the newest segments are missing");
        }
        Ok(self)
    }

    /// The newest sound snapshot, and which of the snapshots it is.
    fn newest_sound(&self) -> Result<Option<(usize, FileHeader)>, OpenError> {
        for (at, begin) in self.snapshots.iter().enumerate().rev() {
            match read_snapshot(self.disk, *begin, &mut Replay::default(), &mut |_, _| Ok(())) {
                Ok(snapshot) => return Ok(Some((at, snapshot.header))),
                Err(OpenError::Damaged { .. } | OpenError::Foreign { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn note(&mut self, name: &str, offset: u64, bytes: u64, what: &str) {
        let file = path_of(self.disk, name);
        self.unsound.push(Unsound { file, offset, bytes, what: what.to_owned() });
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
        self.unsound.push(Unsound { file, offset: 0, bytes: HEADER as u64, what });
        let opened = Groups::open_without_header(self.disk, holds, first, self.identity)?;
        if opened.header.identity != 0 {
            self.identity = Some(opened.header.identity);
        }
        Ok(opened)
    }

    /// Reads the next snapshots, which begin before this position.
    fn snapshots_before(&mut self, position: u64, apply: &mut Apply<'_>) -> Result<(), OpenError> {
        while let Some((begin, later)) = self.snapshots.split_first().filter(|(begin, _)| **begin < position) {
            self.snapshots = later;
            let mut file = self.open(Holds::Snapshot, *begin)?;
            self.replay.start_file(&file.header);
            self.groups(&mut file, u64::MAX, apply)?;
            if self.replay.end.is_none() {
                self.note(&FileName::snapshot(*begin), file.offset, 0, "the end of the snapshot is missing");
            }
        }
        Ok(())
    }

    /// Reads a segment, and returns the position where it ends.
    fn segment(&mut self, first: u64, next: Option<u64>, apply: &mut Apply<'_>) -> Result<u64, OpenError> {
        let mut file = self.open(Holds::Journal, first)?;
        self.groups(&mut file, next.map_or(u64::MAX, |next| next - first), apply)?;
        let missing = if next.is_none() { file.missing_bytes()? } else { 0 };
        if missing > 0 {
            self.note(&FileName::segment(first), file.length, missing, "the end of the file was cut off");
        }
        Ok(file.position(file.offset))
    }

    /// Takes the sound frames of a file up to an offset, and notes what is not sound.
    fn groups(&mut self, file: &mut Groups, end: u64, apply: &mut Apply<'_>) -> Result<(), OpenError> {
        let end = end.min(file.length);
        while file.offset < end {
            let offset = file.offset;
            match file.next()? {
                Next::Group(_, header) => _ = self.frames(file, offset, header.padded(), apply)?,
                Next::Nothing { .. } => {
                    let later = file.later_header(offset, |_| true)?;
                    let stop = later.unwrap_or(end).min(end);
                    let bytes = file.bytes_behind(offset)?.min(stop - offset);
                    if bytes == 0 {
                        // Zeros that were written ahead.
                        break;
                    }
                    let sound = self.frames(file, offset, stop - offset, apply)?;
                    let what = format!("there is no sound group; {sound} frames of it are sound");
                    self.unsound.push(Unsound { file: file.path.clone(), offset, bytes, what });
                    file.offset = stop;
                }
            }
        }
        Ok(())
    }

    /// Takes the sound frames of a group, or of what is left of one. Returns how many there are.
    fn frames(&mut self, file: &mut Groups, offset: u64, length: u64, apply: &mut Apply<'_>) -> Result<u64, OpenError> {
        let (of, path) = (file.header, file.path.clone());
        let most = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_GROUP + GROUP_HEADER);
        let body = file.bytes(offset, most)?.get(GROUP_HEADER..).unwrap_or_default();
        let (mut rest, mut sound) = (body, 0);
        while let Some((frame, after)) = split_frame(rest) {
            if frame.is_sound(rest) {
                sound += 1;
                let offset = offset + (GROUP_HEADER + body.len() - rest.len()) as u64;
                let bytes = (FRAME_HEADER + frame.bytes.len()) as u64;
                if of.holds == Holds::Journal {
                    self.snapshots_before(of.first + offset + bytes, apply)?;
                }
                if let Err(problem) = self.replay.frame(&of, offset + bytes, frame, apply) {
                    let (file, what) = (path.clone(), problem.to_string());
                    self.unsound.push(Unsound { file, offset, bytes, what });
                }
            }
            rest = after;
        }
        Ok(sound)
    }
}
