//! The header of each file: what it is, and its versions. Files of other versions are refused.

use super::frame::{UNIT, u32_at, u64_at};
use crate::store::memory::CHANGES_VERSION;

/// The version of files, groups and frames.
const FORMAT: u16 = 3;

/// The bytes of the header, in every version of the format. Zeros fill its unit up.
pub(super) const HEADER: usize = 512;

/// In every version of the format: 8 bytes of magic, the CRC of all that follows in the header, and the version.
const MAGIC: [u8; 8] = *b"dq-store";

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Journal,
    Snapshot,
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) holds: Holds,
    /// Distinguishes the files of one journal from those of another.
    pub(super) identity: u64,
    /// The position of the segment's first byte, or that where the snapshot began.
    pub(super) first: u64,
    /// Of a segment: everything before this position was synced when the file got its name.
    pub(super) synced: u64,
    /// Of a segment: the bytes that the file had then, which were synced.
    pub(super) length: u64,
}

/// Why the first bytes of a file are not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// It has not the magic of dq.
    Foreign,
    /// Its CRC or a field is wrong.
    Damaged,
    /// A part of it has another version than in this program, which is the second.
    Other(&'static str, u32, u32),
}

impl FileHeader {
    /// The first unit of the file.
    pub(super) fn encode(&self) -> [u8; UNIT] {
        let mut bytes = [0; UNIT];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..14].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[14] = match self.holds {
            Holds::Journal => 1,
            Holds::Snapshot => 2,
        };
        bytes[16..20].copy_from_slice(&CHANGES_VERSION.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.identity.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.synced.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.length.to_le_bytes());
        let crc = crc32fast::hash(&bytes[12..HEADER]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER]) -> Result<Self, HeaderError> {
        if bytes[..8] != MAGIC {
            return Err(HeaderError::Foreign);
        }
        if crc32fast::hash(&bytes[12..]) != u32_at(bytes, 8) {
            return Err(HeaderError::Damaged);
        }
        let (format, changes) = (u16::from_le_bytes([bytes[12], bytes[13]]), u32_at(bytes, 16));
        if format != FORMAT {
            return Err(HeaderError::Other("format", format.into(), FORMAT.into()));
        }
        let holds = match bytes[14] {
            1 => Holds::Journal,
            2 => Holds::Snapshot,
            _ => return Err(HeaderError::Damaged),
        };
        if changes != CHANGES_VERSION {
            return Err(HeaderError::Other("content", changes, CHANGES_VERSION));
        }
        let identity = u64_at(bytes, 24);
        let (first, synced, length) = (u64_at(bytes, 32), u64_at(bytes, 40), u64_at(bytes, 48));
        Ok(Self { holds, identity, first, synced, length })
    }
}
