//! Gives the frames of files to the user of the journal.

use std::collections::BTreeSet;
use std::error::Error;

use super::error::OpenError;
use super::frame::{END, FIRST_OWN_KIND, FRAME_HEADER, NAME, RESERVATION, RawFrame, SEAL, TopicNumber, u64_at};
use super::group::{GROUP_HEADER, GroupHeader, frames};
use super::groups::Groups;
use super::header::{FileHeader, Holds};
use super::position::Position;
use super::topics::Topics;

/// A frame that is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of its topic.
    pub topic: TopicNumber,
    /// The name of its topic; empty for [`TopicNumber::NONE`].
    pub name: &'a str,
    /// As it was appended.
    pub kind: u8,
    /// As they were appended.
    pub bytes: &'a [u8],
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a frame comes from. All of a snapshot come first, then those of the journal from where the snapshot began, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The snapshot.
    Snapshot,
    /// The journal, while the snapshot was being taken: the snapshot may have what the frame says, or not.
    During,
    /// The journal, after the snapshot was complete, or without one.
    Journal,
}

/// Receives the frames.
pub(super) type Apply<'a> = dyn FnMut(Position, Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> + 'a;

/// What the frames have told so far.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) topics: Topics,
    pub(super) reserved: u64,
    /// The first position of the snapshot.
    pub(super) begin: u64,
    /// The end of the snapshot, once it was read.
    pub(super) end: Option<End>,
    pub(super) snapshot_bytes: u64,
    /// Frames given to the user.
    pub(super) frames: u64,
    /// The bytes of the frames of the journal since the snapshot began.
    pub(super) frame_bytes: u64,
    /// As in the last group of the journal.
    pub(super) memory: u32,
    /// Whether the last frame closed the journal.
    pub(super) is_sealed: bool,
    /// The topics that the present file has named.
    named: BTreeSet<TopicNumber>,
    /// Whether frames may be missing: then names may come from other files, a snapshot may be ahead, and the highest reservation counts.
    lacks_frames: bool,
}

/// What the last frame of a snapshot says.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// The position where the journal was.
    pub(super) position: u64,
    /// The frames before this one.
    pub(super) frames: u64,
}

impl Replay {
    /// For frames of which some are missing, of topics that have these names.
    pub(super) fn with_gaps(topics: Topics) -> Self {
        Self { topics, lacks_frames: true, ..Self::default() }
    }

    /// Starts a file.
    pub(super) fn start_file(&mut self, file: &FileHeader) {
        self.named.clear();
        if file.holds == Holds::Snapshot {
            (self.begin, self.end) = (file.first, None);
        }
    }

    /// The position where the snapshot ended.
    pub(super) fn snapshot_end(&self) -> u64 {
        self.end.map_or(0, |end| end.position)
    }

    /// Takes the frames of a group.
    pub(super) fn group(
        &mut self,
        file: &mut Groups,
        offset: u64,
        header: &GroupHeader,
        apply: &mut Apply<'_>,
    ) -> Result<(), OpenError> {
        let (of, path) = (file.header, file.path.clone());
        if of.holds == Holds::Journal {
            self.memory = header.memory;
        }
        for (end, raw) in frames(file.body(offset, header)?) {
            let offset = offset + GROUP_HEADER as u64 + end as u64;
            self.frame(&of, offset, raw, apply).map_err(|problem| match problem {
                Problem::Damage(what) => OpenError::Damaged { file: path.clone(), offset, what: what.to_owned() },
                Problem::Refused(source) => OpenError::Refused { file: path.clone(), offset, source },
            })?;
        }
        Ok(())
    }

    /// Takes a frame that ends at this offset of a file. The user gets every frame of a snapshot, and each frame of the journal that ends after the snapshot began.
    pub(super) fn frame(
        &mut self,
        of: &FileHeader,
        end: u64,
        raw: RawFrame<'_>,
        apply: &mut Apply<'_>,
    ) -> Result<(), Problem> {
        let position = of.first + end;
        let origin = match of.holds {
            Holds::Snapshot => Origin::Snapshot,
            Holds::Journal if self.lacks_frames || position <= self.snapshot_end() => Origin::During,
            Holds::Journal => Origin::Journal,
        };
        let is_known = origin != Origin::Snapshot && position <= self.begin;
        if origin != Origin::Snapshot && !is_known {
            self.frame_bytes += (FRAME_HEADER + raw.bytes.len()) as u64;
        }
        self.is_sealed = raw.kind == SEAL;
        match raw.kind {
            NAME => return self.name(&raw),
            RESERVATION => {
                let number = raw.bytes.try_into().map_err(|_| Problem::Damage("a reservation has no number"))?;
                let number = u64::from_le_bytes(number);
                if !is_known {
                    self.reserved = if self.lacks_frames { self.reserved.max(number) } else { number };
                }
                return Ok(());
            }
            END if raw.bytes.len() == 16 && origin == Origin::Snapshot => {
                self.end = Some(End { position: u64_at(raw.bytes, 0), frames: u64_at(raw.bytes, 8) });
                return Ok(());
            }
            SEAL | END => return Ok(()),
            kind if kind >= FIRST_OWN_KIND => return Err(Problem::Damage("a frame has an unknown kind")),
            _ => {}
        }
        let name = match raw.topic {
            TopicNumber::NONE => "",
            topic if self.lacks_frames || self.named.contains(&topic) => {
                self.topics.name(topic).ok_or(Problem::Damage("the name of its topic is lost"))?
            }
            _ => return Err(Problem::Damage("a frame is of a topic that the file does not name")),
        };
        if is_known {
            return Ok(());
        }
        self.frames += 1;
        let frame = Frame { topic: raw.topic, name, kind: raw.kind, bytes: raw.bytes, origin };
        apply(Position(position), frame).map_err(Problem::Refused)
    }

    fn name(&mut self, raw: &RawFrame<'_>) -> Result<(), Problem> {
        let name = std::str::from_utf8(raw.bytes).map_err(|_| Problem::Damage("the name of a topic is not UTF-8"))?;
        if raw.topic == TopicNumber::NONE || !self.topics.learn(raw.topic, name) {
            return Err(Problem::Damage("a number stands for two topics"));
        }
        self.named.insert(raw.topic);
        Ok(())
    }
}

/// Why a sound frame cannot be.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("{0}")]
    Damage(&'static str),
    #[error("{0}")]
    Refused(Box<dyn Error + Send + Sync>),
}
