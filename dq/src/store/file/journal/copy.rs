//! Copies a journal, also beside the process that uses it.

use std::error::Error;

use super::appending::Journal;
use super::error::{Fault, OpenError, tried};
use super::files::Files;
use super::groups::{Groups, WINDOW};
use super::position::{FileName, Position};
use super::recover::recover;
use super::replay::{Frame, Replay};
use super::writer::watermark;
use crate::store::file::disk::Disk;

impl Journal {
    /// Copies what an opening would read to an empty disk: everything that was confirmed before this call, and perhaps more. A process may
    /// use the journal meanwhile. Returns the bytes of the copy.
    ///
    /// The watermark comes first and each file gets its name last, so a copy that was interrupted does not open.
    ///
    /// # Errors
    /// As [`read`](Self::read), and [`OpenError::Io`] of the disk that is written.
    pub fn copy(from: &dyn Disk, to: &dyn Disk) -> Result<u64, OpenError> {
        let mut nothing = |_: Position, _: Frame<'_>| Ok::<_, Box<dyn Error + Send + Sync>>(());
        let files = Files::list(from)?;
        if let Some(newest) = files.segments.last() {
            watermark(to, *newest, &[])?;
        }
        let mut copied = 0;
        recover(from, &files, &mut Replay::default(), &mut nothing, &mut |file| {
            copied += copy_file(file, to)?;
            Ok(())
        })?;
        tried("sync", to, "", to.sync())?;
        Ok(copied)
    }
}

/// Copies what was read of a file, with as many zeros after it as its groups say. Returns the bytes of the copy.
fn copy_file(file: &mut Groups, to: &dyn Disk) -> Result<u64, Fault> {
    let name = FileName::holding(file.header.holds, file.header.first);
    let unfinished = FileName::unfinished(&name);
    let copy = tried("create", to, &unfinished, to.create(&unfinished))?;
    let mut offset = 0;
    while offset < file.offset {
        let left = usize::try_from(file.offset - offset).unwrap_or(usize::MAX);
        let bytes = file.bytes(offset, left.min(WINDOW))?;
        if bytes.is_empty() {
            break;
        }
        tried("write", to, &unfinished, copy.write_at(offset, bytes))?;
        offset += bytes.len() as u64;
    }
    if offset < file.durable_length {
        offset = file.durable_length;
        tried("write", to, &unfinished, copy.write_at(offset - 1, &[0]))?;
    }
    tried("sync", to, &unfinished, copy.sync())?;
    tried("rename", to, &unfinished, to.rename(&unfinished, &name))?;
    Ok(offset)
}
