//! What was appended and is not yet written.

use std::collections::VecDeque;

use super::frame::{FRAME_HEADER, NAME, RESERVATION, SEAL, TopicNumber, UNIT};
use super::group::Building;
use super::position::Position;
use super::topics::Topics;

/// Buffers that are kept for the next groups.
const BUFFERS: usize = 2;

/// A larger buffer is not kept.
const LARGEST_BUFFER: usize = 1 << 20;

/// A group that takes no more frames.
#[derive(Debug)]
pub(super) struct Closed {
    /// The first position of the segment that it belongs into.
    pub(super) segment: u64,
    pub(super) group: Building,
}

/// The last snapshot; all zero if there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastSnapshot {
    /// Where it began.
    pub(super) begin: u64,
    /// The bytes of the journal's frames then.
    pub(super) frames: u64,
    /// Its size.
    pub(super) bytes: u64,
}

/// The groups that are not yet written: one that is open, and those that became full before.
#[derive(Debug)]
pub(super) struct Tail {
    segment_bytes: u64,
    /// The segment of the open group, by its first position.
    segment: u64,
    open: Building,
    full: VecDeque<Closed>,
    buffers: Vec<Vec<u8>>,
    /// The bytes of all frames before the open group.
    closed_frames: u64,
    pub(super) topics: Topics,
    pub(super) reserved: u64,
    /// The segment that has the reservation.
    reserved_in: Option<u64>,
    /// The end of the last frame.
    pub(super) appended: Position,
    pub(super) is_sealed: bool,
    pub(super) snapshot: LastSnapshot,
}

impl Tail {
    /// Continues a segment at `end`, or after it with a new one if `is_new_segment`.
    pub(super) fn new(
        segment_bytes: u64,
        segment: u64,
        end: u64,
        is_new_segment: bool,
        topics: Topics,
        reserved: u64,
    ) -> Self {
        let mut tail = Self {
            segment_bytes,
            segment,
            open: Building::default(),
            full: VecDeque::new(),
            buffers: Vec::new(),
            closed_frames: 0,
            topics,
            reserved,
            reserved_in: None,
            appended: Position(end),
            is_sealed: false,
            snapshot: LastSnapshot::default(),
        };
        tail.start_group(end, is_new_segment);
        tail
    }

    /// Opens a group at `next`, or in a new segment there.
    fn start_group(&mut self, next: u64, is_new_segment: bool) {
        let mut position = next;
        if is_new_segment || next - self.segment >= self.segment_bytes {
            self.segment = next;
            position += UNIT as u64;
        }
        self.open = Building::start(position, self.buffers.pop().unwrap_or_default());
    }

    fn close_group(&mut self) {
        let next = self.open.next();
        self.closed_frames += self.open.frame_bytes();
        let group = std::mem::take(&mut self.open);
        self.full.push_back(Closed { segment: self.segment, group });
        self.start_group(next, false);
    }

    /// Sets how long a segment gets, from the next group on.
    pub(super) fn limit_segments(&mut self, segment_bytes: u64) {
        self.segment_bytes = segment_bytes;
        if self.open.position > self.segment + UNIT as u64 {
            self.start_group(self.open.position, false);
        }
    }

    /// The bytes of all frames since the last snapshot before the opening.
    pub(super) fn frame_bytes(&self) -> u64 {
        self.closed_frames + self.open.frame_bytes()
    }

    /// Counts these bytes of frames, which were read, in place of those that were appended.
    pub(super) const fn count_frames(&mut self, bytes: u64) {
        self.closed_frames = bytes;
    }

    /// Adds a frame, behind what a reader of its segment must know first.
    pub(super) fn push(&mut self, topic: TopicNumber, header: &[u8; FRAME_HEADER], bytes: &[u8]) -> Position {
        if self.open.is_full_for(bytes.len()) {
            self.close_group();
        }
        if self.reserved_in.is_some_and(|segment| segment != self.segment) || self.is_unreserved() {
            self.push_reservation();
        }
        if let Some(name) = self.topics.enter(topic, self.segment) {
            self.open.push(topic, NAME, name.as_bytes());
        }
        self.open.push_sealed(header, bytes);
        self.appended = Position(self.open.end());
        self.appended
    }

    const fn is_unreserved(&self) -> bool {
        self.reserved_in.is_none() && self.reserved > 0
    }

    fn push_reservation(&mut self) {
        self.open.push(TopicNumber::NONE, RESERVATION, &self.reserved.to_le_bytes());
        self.reserved_in = Some(self.segment);
    }

    /// Notes a reservation, which replaces the one before it.
    pub(super) fn reserve(&mut self, reserved: u64) -> Position {
        if self.open.is_full_for(8) {
            self.close_group();
        }
        self.reserved = reserved;
        self.push_reservation();
        self.appended = Position(self.open.end());
        self.appended
    }

    /// Adds a group that says that the journal was closed cleanly, once. It stands alone, so that damage in the group before it is
    /// not taken for a torn tail.
    pub(super) fn seal(&mut self) {
        if self.is_sealed {
            return;
        }
        if !self.open.is_empty() {
            self.close_group();
        }
        self.open.push(TopicNumber::NONE, SEAL, &[]);
        self.appended = Position(self.open.end());
        self.is_sealed = true;
    }

    /// Takes the next group that must be written.
    pub(super) fn take(&mut self) -> Option<Closed> {
        if self.full.is_empty() && !self.open.is_empty() {
            self.close_group();
        }
        self.full.pop_front()
    }

    /// Takes a buffer back.
    pub(super) fn reuse(&mut self, group: Building) {
        let buffer = group.into_buffer();
        if self.buffers.len() < BUFFERS && buffer.capacity() <= LARGEST_BUFFER {
            self.buffers.push(buffer);
        }
    }
}
