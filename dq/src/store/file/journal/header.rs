//! The first sector of each file: what it is, and its versions.
//!
//! A new version adds its number here, and a function that turns a frame of the version before it into a frame of its own, at
//! the place that [`upgrade`] marks. `tests/journal/fixtures` keeps a directory of each version that was ever written, which
//! must always open.

use super::frame::{RawFrame, SECTOR, u32_at, u64_at};

/// The version that this program writes.
pub const FORMAT: u16 = 1;

/// The oldest version that this program reads.
const OLDEST_FORMAT: u16 = 1;

/// Turns a frame of an older version into one of [`FORMAT`], one version after the other.
pub(super) fn upgrade(format: u16, frame: RawFrame<'_>) -> RawFrame<'_> {
    debug_assert!((OLDEST_FORMAT..=FORMAT).contains(&format), "a header of another version was refused");
    // Version 1 is the first. `if format < 2 { frame = from_1_to_2(frame) }` comes here, then the next.
    frame
}

/// In every version of the format: 8 bytes of magic, the CRC of all that follows in the sector, and the version.
const MAGIC: [u8; 8] = *b"dq-store";

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Journal,
    Snapshot,
}

/// The first sector of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    /// The version of the format of groups and frames.
    pub(super) format: u16,
    pub(super) holds: Holds,
    /// The version of the content of frames, which only the user of the journal knows.
    pub(super) content: u32,
    /// Distinguishes the files of one journal from those of another.
    pub(super) identity: u64,
    /// The position of the segment's first byte, or that where the snapshot began.
    pub(super) first: u64,
    /// Of a segment: everything before this position was synced when the file got its name.
    pub(super) synced: u64,
}

/// Why a first sector is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// It has not the magic of dq.
    Foreign,
    /// Its CRC or a field is wrong.
    Damaged,
    /// Its version is newer than this program, which knows the second.
    Newer { format: u32, known: u32 },
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        sector[..8].copy_from_slice(&MAGIC);
        sector[12..14].copy_from_slice(&self.format.to_le_bytes());
        sector[14] = match self.holds {
            Holds::Journal => 1,
            Holds::Snapshot => 2,
        };
        sector[16..20].copy_from_slice(&self.content.to_le_bytes());
        sector[24..32].copy_from_slice(&self.identity.to_le_bytes());
        sector[32..40].copy_from_slice(&self.first.to_le_bytes());
        sector[40..48].copy_from_slice(&self.synced.to_le_bytes());
        let crc = crc32fast::hash(&sector[12..]);
        sector[8..12].copy_from_slice(&crc.to_le_bytes());
        sector
    }

    pub(super) fn decode(sector: &[u8; SECTOR]) -> Result<Self, HeaderError> {
        if sector[..8] != MAGIC {
            return Err(HeaderError::Foreign);
        }
        if crc32fast::hash(&sector[12..]) != u32_at(sector, 8) {
            return Err(HeaderError::Damaged);
        }
        let format = u16::from_le_bytes([sector[12], sector[13]]);
        if format > FORMAT {
            return Err(HeaderError::Newer { format: format.into(), known: FORMAT.into() });
        }
        let holds = match sector[14] {
            1 => Holds::Journal,
            2 => Holds::Snapshot,
            _ => return Err(HeaderError::Damaged),
        };
        if format < OLDEST_FORMAT {
            return Err(HeaderError::Damaged);
        }
        let (content, identity) = (u32_at(sector, 16), u64_at(sector, 24));
        let (first, synced) = (u64_at(sector, 32), u64_at(sector, 40));
        Ok(Self { format, holds, content, identity, first, synced })
    }
}
