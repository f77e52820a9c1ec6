//! Gives the frames of files to the user of the journal.

use std::collections::BTreeSet;
use std::error::Error;

use super::error::OpenError;
use super::frame::{END, FIRST_OWN_KIND, FRAME_HEADER, NAME, RESERVATION, RawFrame, SEAL, TopicNumber};
use super::group::{GROUP_HEADER, GroupHeader, frames};
use super::groups::Groups;
use super::header::Holds;
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
    /// The first and last position of the snapshot.
    pub(super) begin: u64,
    pub(super) end: u64,
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
}

impl Replay {
    /// Starts a file.
    pub(super) fn start_file(&mut self) {
        self.named.clear();
    }

    /// Gives the frames of a group to the user: all of a snapshot, and those of the journal that end after the snapshot began.
    pub(super) fn group(
        &mut self,
        file: &mut Groups,
        (offset, header): (u64, &GroupHeader),
        apply: &mut Apply<'_>,
    ) -> Result<(), OpenError> {
        let (of, path) = (file.header, file.path.clone());
        if of.holds == Holds::Journal {
            self.memory = header.memory;
        }
        let body = file.body(offset, header)?;
        for (end, raw) in frames(body) {
            let end = offset + GROUP_HEADER as u64 + end as u64;
            let position = of.first + end;
            let origin = match of.holds {
                Holds::Snapshot => Origin::Snapshot,
                Holds::Journal if position <= self.end => Origin::During,
                Holds::Journal => Origin::Journal,
            };
            let is_known = origin != Origin::Snapshot && position <= self.begin;
            if origin != Origin::Snapshot && !is_known {
                self.frame_bytes += (FRAME_HEADER + raw.bytes.len()) as u64;
            }
            self.frame(Position(position), (raw, origin), is_known, apply).map_err(
                |problem| match problem {
                    Problem::Damage(what) => {
                        OpenError::Damaged { file: path.clone(), offset: end, what: what.to_owned() }
                    }
                    Problem::Refused(source) => OpenError::Refused { file: path.clone(), offset: end, source },
                },
            )?;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        position: Position,
        (raw, origin): (RawFrame<'_>, Origin),
        is_known: bool,
        apply: &mut Apply<'_>,
    ) -> Result<(), Problem> {
        self.is_sealed = raw.kind == SEAL;
        match raw.kind {
            NAME => return self.name(&raw),
            RESERVATION => {
                let number = raw.bytes.try_into().map_err(|_| Problem::Damage("a reservation has no number"))?;
                if !is_known {
                    self.reserved = u64::from_le_bytes(number);
                }
                return Ok(());
            }
            SEAL | END => return Ok(()),
            kind if kind >= FIRST_OWN_KIND => return Err(Problem::Damage("a frame has an unknown kind")),
            _ => {}
        }
        let name = match raw.topic {
            TopicNumber::NONE => "",
            topic if self.named.contains(&topic) => self.topics.name(topic).unwrap_or_default(),
            _ => return Err(Problem::Damage("a frame is of a topic that the file does not name")),
        };
        if is_known {
            return Ok(());
        }
        self.frames += 1;
        let frame = Frame { topic: raw.topic, name, kind: raw.kind, bytes: raw.bytes, origin };
        apply(position, frame).map_err(Problem::Refused)
    }

    fn name(&mut self, raw: &RawFrame<'_>) -> Result<(), Problem> {
        let name = std::str::from_utf8(raw.bytes).map_err(|_| Problem::Damage("the name of a topic is no text"))?;
        if raw.topic == TopicNumber::NONE || !self.topics.learn(raw.topic, name) {
            return Err(Problem::Damage("a number stands for two topics"));
        }
        self.named.insert(raw.topic);
        Ok(())
    }
}

/// Why a sound frame cannot be.
enum Problem {
    Damage(&'static str),
    Refused(Box<dyn Error + Send + Sync>),
}
