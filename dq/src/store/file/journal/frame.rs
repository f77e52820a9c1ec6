//! Frames, of which the journal consists; and numbers and units in files.

/// Everything in a file starts at a multiple of this, and what was synced is never written again. A system writes a page as a whole,
/// so a smaller unit would put what was synced beside new bytes to the disk again.
pub const UNIT: usize = 4_096;

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The next multiple of a unit.
pub(super) const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(UNIT as u64)
}

/// The bytes in front of the content of each frame.
pub(super) const FRAME_HEADER: usize = 13;

/// The most bytes of content that a frame may have: more than the largest row, which is a job of 16 MiB with a replacement of 16 MiB.
pub const MAX_FRAME: usize = 48 << 20;

/// Kinds from here on are the journal's own.
pub const FIRST_OWN_KIND: u8 = 0xF0;

/// Gives a topic its number.
pub(super) const NAME: u8 = 0xF0;
/// Reserves numbers up to one.
pub(super) const RESERVATION: u8 = 0xF1;
/// Ends a journal that was closed cleanly.
pub(super) const SEAL: u8 = 0xF2;
/// Ends a snapshot.
pub(super) const END: u8 = 0xF3;

/// Stands for the name of a topic in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicNumber(pub(super) u32);

impl TopicNumber {
    /// No topic: for frames about the whole store.
    pub const NONE: Self = Self(0);
}

/// The header of a frame, whose CRC covers everything of the frame that follows it.
pub(super) fn frame_header(topic: TopicNumber, kind: u8, bytes: &[u8]) -> [u8; FRAME_HEADER] {
    let mut header = [0; FRAME_HEADER];
    let length = u32::try_from(bytes.len()).expect("at most MAX_FRAME");
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8] = kind;
    header[9..13].copy_from_slice(&topic.0.to_le_bytes());
    let crc = crc_of(&header, bytes);
    header[..4].copy_from_slice(&crc.to_le_bytes());
    header
}

fn crc_of(header: &[u8], bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[4..FRAME_HEADER]);
    crc.update(bytes);
    crc.finalize()
}

/// A frame in the body of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawFrame<'a> {
    pub(super) topic: TopicNumber,
    pub(super) kind: u8,
    pub(super) bytes: &'a [u8],
}

impl RawFrame<'_> {
    /// Whether the CRC is right of this frame, which `body` starts with.
    pub(super) fn is_sound(&self, body: &[u8]) -> bool {
        crc_of(&body[..FRAME_HEADER], self.bytes) == u32_at(body, 0)
    }
}

/// Takes the first frame from a body. `None` if it does not fit. Neither the CRC nor the limit is checked.
pub(super) fn split_frame(body: &[u8]) -> Option<(RawFrame<'_>, &[u8])> {
    if body.len() < FRAME_HEADER {
        return None;
    }
    let (header, rest) = body.split_at(FRAME_HEADER);
    let length = u32_at(header, 4) as usize;
    if length > rest.len() {
        return None;
    }
    let (bytes, rest) = rest.split_at(length);
    Some((RawFrame { topic: TopicNumber(u32_at(header, 9)), kind: header[8], bytes }, rest))
}
