//! Making files: complete under their name, or not there.

use std::io::ErrorKind;

use super::fault::{Doing, Fault};
use super::header::FileHeader;
use super::layout::SECTOR;
use super::position::FileName;
use crate::store::file::disk::{Disk, DiskFile};

/// Zeros for [`zeros_ahead`].
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Makes a segment and makes it durable, with the group that it starts with, if any, and zeros behind that. Until then it has
/// another name, so a segment has a header whatever happens. Returns the file, and up to where it has bytes.
pub(super) fn create_segment(
    disk: &dyn Disk,
    header: &FileHeader,
    group: &[u8],
    ahead: u64,
) -> Result<(Box<dyn DiskFile>, u64), Fault> {
    let name = FileName::segment(header.first);
    let unfinished = FileName::unfinished(&name);
    let file = create_unfinished(disk, &unfinished, header)?;
    if !group.is_empty() {
        Doing::Write.fault(disk, &unfinished, file.write_at(SECTOR as u64, group))?;
    }
    let end = (SECTOR + group.len()) as u64;
    let zeroed = zeros_ahead(disk, &unfinished, &*file, (end, ahead))?;
    Doing::Sync.fault(disk, &unfinished, file.sync())?;
    Doing::Rename.fault(disk, &unfinished, disk.rename(&unfinished, &name))?;
    Doing::Sync.directory_fault(disk, disk.sync())?;
    Ok((file, zeroed))
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

/// A disk with less room than this times the zeros gets none: what is left is for what comes, such as the next start.
const ROOM: u64 = 16;

/// Writes zeros from an offset on, if there is much room: they are only faster. Returns up to where there are some.
pub(super) fn zeros_ahead(
    disk: &dyn Disk,
    name: &str,
    file: &dyn DiskFile,
    (end, ahead): (u64, u64),
) -> Result<u64, Fault> {
    let mut zeroed = end;
    if ahead == 0 || !matches!(disk.room(), Ok(room) if room.is_none_or(|room| room >= ROOM * ahead)) {
        return Ok(end);
    }
    while zeroed < end + ahead {
        let some = (end + ahead - zeroed).min(ZEROS.len() as u64);
        match Doing::Write.fault(disk, name, file.write_at(zeroed, &ZEROS[..some as usize])) {
            Err(fault) if fault.is_full() => break,
            written => written?,
        }
        zeroed += some;
    }
    Ok(zeroed)
}
