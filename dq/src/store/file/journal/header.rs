//! The header of each file: what it is, and its versions.
//!
//! A new version adds its number here, and a function that turns a frame of the version before it into a frame of its own, at
//! the place that [`upgrade`] marks. `tests/journal/fixtures` keeps a directory of each version that was ever written, which
//! must always open.

use super::frame::{RawFrame, UNIT, u32_at, u64_at};

/// The version that this program writes.
pub const FORMAT: u16 = 2;

/// The oldest version that this program reads.
const OLDEST_FORMAT: u16 = 1;

/// Turns a frame of an older version into one of [`FORMAT`], one version after the other.
pub(super) fn upgrade(format: u16, frame: RawFrame<'_>) -> RawFrame<'_> {
    debug_assert!((OLDEST_FORMAT..=FORMAT).contains(&format), "a header of another version was refused");
    // Version 2 has larger units, and the frames of version 1. `if format < 3 { frame = from_2_to_3(frame) }` comes here.
    frame
}

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

/// Why the first bytes of a file are not a header.
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
    /// What the groups of the file start at multiples of.
    pub(super) const fn unit(&self) -> usize {
        if self.format < 2 { 512 } else { UNIT }
    }

    /// Whether new frames with this version of their content may come into the same segment.
    pub(super) const fn is_current(&self, content: u32) -> bool {
        self.content == content && self.format == FORMAT
    }

    /// The first unit of the file.
    pub(super) fn encode(&self) -> [u8; UNIT] {
        let mut bytes = [0; UNIT];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..14].copy_from_slice(&self.format.to_le_bytes());
        bytes[14] = match self.holds {
            Holds::Journal => 1,
            Holds::Snapshot => 2,
        };
        bytes[16..20].copy_from_slice(&self.content.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.identity.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.synced.to_le_bytes());
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
        let format = u16::from_le_bytes([bytes[12], bytes[13]]);
        if format > FORMAT {
            return Err(HeaderError::Newer { format: format.into(), known: FORMAT.into() });
        }
        let holds = match bytes[14] {
            1 => Holds::Journal,
            2 => Holds::Snapshot,
            _ => return Err(HeaderError::Damaged),
        };
        if format < OLDEST_FORMAT {
            return Err(HeaderError::Damaged);
        }
        let (content, identity) = (u32_at(bytes, 16), u64_at(bytes, 24));
        let (first, synced) = (u64_at(bytes, 32), u64_at(bytes, 40));
        Ok(Self { format, holds, content, identity, first, synced })
    }
}
