//! Reads a journal on from where it was read before, beside the process that writes it.

use std::error::Error;
use std::io::ErrorKind;

use super::appending::Journal;
use super::error::{Fault, OpenError};
use super::files::Files;
use super::groups::{Groups, Next};
use super::header::Holds;
use super::position::Position;
use super::recover::recover;
use super::replay::{Apply, Frame, Replay};
use crate::store::file::disk::Disk;

/// How far a journal was read.
#[derive(Debug)]
pub struct Follower {
    replay: Replay,
    /// The last segment. It stays open, so it can be read to its end after a snapshot has replaced it.
    file: Groups,
}

impl Journal {
    /// As [`read`](Self::read), and returns what reads on from there; `None` if there is no journal.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn follow<E: Into<Box<dyn Error + Send + Sync>>>(
        disk: &dyn Disk,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<Option<Follower>, OpenError> {
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        let mut replay = Replay::default();
        let files = Files::list(disk)?;
        let Some(last) = recover(disk, &files, &mut replay, &mut apply, &mut |_| Ok(()))? else {
            return Ok(None);
        };
        Ok(Some(Follower { replay, file: last.file }))
    }
}

impl Follower {
    /// Gives every frame to `apply` that was written since the last call. Returns false if the files do not continue what was read:
    /// snapshots have replaced them, or the program has started again. Then only [`Journal::follow`] reads them.
    ///
    /// # Errors
    /// As [`Journal::read`]; the journal must then be followed anew.
    pub fn read_on<E: Into<Box<dyn Error + Send + Sync>>>(
        &mut self,
        disk: &dyn Disk,
        mut apply: impl FnMut(Position, Frame<'_>) -> Result<(), E>,
    ) -> Result<bool, OpenError> {
        let mut apply = |position: Position, frame: Frame<'_>| apply(position, frame).map_err(Into::into);
        loop {
            self.read_groups(&mut apply)?;
            let (first, segments) = (self.file.header.first, Files::list(disk)?.segments);
            let Some(next) = segments.iter().copied().find(|next| *next > first) else {
                return Ok(segments.contains(&first));
            };
            // Its last groups may have been written since they were looked for.
            self.read_groups(&mut apply)?;
            if self.file.position(self.file.offset) != next {
                return Ok(false);
            }
            match Groups::open(disk, Holds::Journal, next) {
                Ok(file) if file.header.identity == self.file.header.identity => self.file = file,
                Err(OpenError::Io(Fault { source, .. })) if source.kind() != ErrorKind::NotFound => {
                    return Err(OpenError::Io(Fault { file: disk.path(), doing: "read", source }));
                }
                Ok(_) | Err(_) => return Ok(false),
            }
            self.replay.start_file(&self.file.header);
        }
    }

    fn read_groups(&mut self, apply: &mut Apply<'_>) -> Result<(), OpenError> {
        self.file.refresh()?;
        while self.file.offset < self.file.length {
            match self.file.next()? {
                Next::Group(offset, header) => self.replay.group(&mut self.file, offset, &header, apply)?,
                // A group that is half-written is sound the next time.
                Next::Nothing { at, later } => return self.file.must_be_torn(at, later),
            }
        }
        self.file.must_be_whole()
    }
}
