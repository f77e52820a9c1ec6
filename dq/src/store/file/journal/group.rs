//! Groups: the frames that are written together and synced together.

use super::frame::{FRAME_HEADER, MAX_FRAME, RawFrame, TopicNumber, frame_header, padded, split_frame, u32_at, u64_at};
use super::header::Holds;

/// The bytes in front of the frames of each group.
pub(super) const GROUP_HEADER: usize = 56;

/// A group to which no further frame is added.
pub(super) const DEFAULT_GROUP: usize = 4 << 20;

/// The most bytes of frames in a group: a reader never takes more at once. Names and reservations stand beside the largest frame.
/// A limit is part of the format: with a lower one a reader refuses what this one wrote.
pub const MAX_GROUP: usize = DEFAULT_GROUP + MAX_FRAME + (64 << 10);

/// What the groups of a kind of file start with, so that none passes for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) magic: [u8; 4],
    pub(super) identity: u64,
}

impl Stamp {
    pub(super) const fn of(holds: Holds, identity: u64) -> Self {
        let magic = match holds {
            Holds::Journal => *b"dqjg",
            Holds::Snapshot => *b"dqsg",
        };
        Self { magic, identity }
    }
}

/// What was synced before a group was written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    /// Everything before this position.
    pub(super) synced: u64,
    /// So many bytes of the segment, with the zeros that it ends with.
    pub(super) length: u64,
}

/// The header of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupHeader {
    /// Where the group starts.
    pub(super) position: u64,
    /// Everything before this was synced when the group was written.
    pub(super) synced: u64,
    /// The bytes of its frames.
    pub(super) bytes: u32,
    pub(super) frames: u32,
    body_crc: u32,
    /// What the state of the user took in memory when the group was written, in KiB; 0: that is not known.
    pub(super) memory: u32,
    /// Of a group in a segment: so many bytes of the file were synced before the group was written.
    pub(super) length: u64,
}

impl GroupHeader {
    /// `None` if these bytes are no header of a group at this position. It may name more bytes than [`MAX_GROUP`].
    pub(super) fn decode(bytes: &[u8], stamp: Stamp, position: u64) -> Option<Self> {
        let bytes = bytes.get(..GROUP_HEADER)?;
        let is_ours = bytes[..4] == stamp.magic && u64_at(bytes, 8) == stamp.identity;
        if !is_ours || u64_at(bytes, 16) != position || crc32fast::hash(&bytes[8..]) != u32_at(bytes, 4) {
            return None;
        }
        let header = Self {
            position,
            synced: u64_at(bytes, 24),
            bytes: u32_at(bytes, 32),
            frames: u32_at(bytes, 36),
            body_crc: u32_at(bytes, 40),
            memory: u32_at(bytes, 44),
            length: u64_at(bytes, 48),
        };
        let fits = header.frames >= 1 && header.frames as usize <= header.bytes as usize / FRAME_HEADER;
        (fits && header.synced <= position).then_some(header)
    }

    fn encode(&self, stamp: Stamp) -> [u8; GROUP_HEADER] {
        let mut bytes = [0; GROUP_HEADER];
        bytes[..4].copy_from_slice(&stamp.magic);
        bytes[8..16].copy_from_slice(&stamp.identity.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.position.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.frames.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.body_crc.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.memory.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.length.to_le_bytes());
        let crc = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The bytes of the whole group, with the zeros up to the next.
    pub(super) fn padded(&self) -> u64 {
        padded(GROUP_HEADER as u64 + u64::from(self.bytes))
    }

    /// Checks the frames of the group.
    pub(super) fn check(&self, body: &[u8]) -> Result<(), Unsound> {
        let (mut rest, mut frames) = (body, 0);
        while !rest.is_empty() {
            let at = body.len() - rest.len();
            let (frame, after) = split_frame(rest).ok_or(Unsound::From(at))?;
            if !frame.is_sound(rest) {
                return Err(Unsound::From(at));
            }
            if frame.bytes.len() > MAX_FRAME {
                return Err(Unsound::Beyond { at, bytes: frame.bytes.len() });
            }
            (rest, frames) = (after, frames + 1);
        }
        let is_whole = frames == self.frames && body.len() == self.bytes as usize;
        if is_whole && crc32fast::hash(body) == self.body_crc { Ok(()) } else { Err(Unsound::From(0)) }
    }
}

/// Why the frames of a group are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsound {
    /// From this byte of the body on they are damaged.
    From(usize),
    /// The frame at this byte of the body is sound, and larger than [`MAX_FRAME`].
    Beyond { at: usize, bytes: usize },
}

/// The frames of a body that was checked, each with the offset of its end.
pub(super) fn frames(body: &[u8]) -> impl Iterator<Item = (usize, RawFrame<'_>)> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let (frame, after) = split_frame(rest)?;
        rest = after;
        Some((body.len() - rest.len(), frame))
    })
}

/// A group that is being filled.
#[derive(Debug, Default)]
pub(super) struct Building {
    /// Where it starts.
    pub(super) position: u64,
    /// Room for the header, the frames, and zeros once it was finished.
    bytes: Vec<u8>,
    /// The bytes without the zeros.
    filled: usize,
    frames: u32,
}

impl Building {
    /// Starts a group in a buffer, whose content goes.
    pub(super) fn start(position: u64, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(GROUP_HEADER, 0);
        Self { position, bytes: buffer, filled: GROUP_HEADER, frames: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Whether a frame of this many bytes belongs into the next group.
    pub(super) fn is_full_for(&self, bytes: usize) -> bool {
        !self.is_empty() && self.filled + FRAME_HEADER + bytes > DEFAULT_GROUP
    }

    pub(super) fn push(&mut self, topic: TopicNumber, kind: u8, bytes: &[u8]) {
        self.push_sealed(&frame_header(topic, kind, bytes), bytes);
    }

    /// Adds a frame whose header was made before.
    pub(super) fn push_sealed(&mut self, header: &[u8; FRAME_HEADER], bytes: &[u8]) {
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(bytes);
        self.filled = self.bytes.len();
        self.frames += 1;
    }

    /// The bytes of the frames.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.filled.saturating_sub(GROUP_HEADER) as u64
    }

    /// The position after the last frame.
    pub(super) fn end(&self) -> u64 {
        self.position + self.filled as u64
    }

    /// The position where the next group may start.
    pub(super) fn next(&self) -> u64 {
        self.position + padded(self.filled as u64)
    }

    /// Writes the header and the zeros behind the frames. Returns the bytes of the group. May be called again.
    pub(super) fn finish(&mut self, stamp: Stamp, written: Written, memory: u32) -> &[u8] {
        let body = &self.bytes[GROUP_HEADER..self.filled];
        let header = GroupHeader {
            position: self.position,
            synced: written.synced,
            length: written.length,
            bytes: u32::try_from(body.len()).expect("at most MAX_GROUP"),
            frames: self.frames,
            body_crc: crc32fast::hash(body),
            memory,
        };
        self.bytes[..GROUP_HEADER].copy_from_slice(&header.encode(stamp));
        self.bytes.resize(header.padded() as usize, 0);
        &self.bytes
    }

    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}
