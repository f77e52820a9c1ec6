//! Making files: complete under their name, or not there.

use std::io::ErrorKind;

use super::fault::{Doing, Fault};
use super::header::{FileHeader, Holds};
use super::layout::SECTOR;
use super::position::FileName;
use super::versions::FORMAT;
use crate::store::file::disk::{Disk, DiskFile};

/// Zeros for [`write_zeros`].
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Makes an empty segment and makes it durable. Until then it has another name, so a segment has a header whatever happens.
pub(super) fn create_segment(
    disk: &dyn Disk,
    (content, identity, first): (u32, u64, u64),
    ahead: u64,
) -> Result<Box<dyn DiskFile>, Fault> {
    let name = FileName::segment(first);
    let header = FileHeader { format: FORMAT, holds: Holds::Journal, content, identity, first };
    let unfinished = FileName::unfinished(&name);
    let file = create_unfinished(disk, &unfinished, &header)?;
    Doing::Write.fault(disk, &unfinished, write_zeros(&*file, SECTOR as u64, ahead))?;
    Doing::Sync.fault(disk, &unfinished, file.sync())?;
    Doing::Rename.fault(disk, &unfinished, disk.rename(&unfinished, &name))?;
    Doing::Sync.directory_fault(disk, disk.sync())?;
    Ok(file)
}

/// Makes a file that has only its header, in place of one of this name that was not finished.
pub(super) fn create_unfinished(
    disk: &dyn Disk,
    unfinished: &str,
    header: &FileHeader,
) -> Result<Box<dyn DiskFile>, Fault> {
    match disk.remove(unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Doing::Remove.fault(disk, unfinished, Err(error));
        }
        _ => {}
    }
    let file = Doing::Create.fault(disk, unfinished, disk.create(unfinished))?;
    Doing::Write.fault(disk, unfinished, file.write_at(0, &header.encode()))?;
    Ok(file)
}

/// Writes zeros.
pub(super) fn write_zeros(file: &dyn DiskFile, mut offset: u64, mut bytes: u64) -> std::io::Result<()> {
    while bytes > 0 {
        let some = bytes.min(ZEROS.len() as u64);
        file.write_at(offset, &ZEROS[..some as usize])?;
        (offset, bytes) = (offset + some, bytes - some);
    }
    Ok(())
}
