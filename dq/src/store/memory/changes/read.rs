//! Bytes → the values of changes. Every length is checked against the bytes that are left before anything is allocated.

use bytes::Bytes;

use super::super::places::{AddedJob, End, Ended, PendingCommand, Replacement, TimedPlace};
use super::bits;
use crate::job::{Deliver, Fence, Isolation, JobId, NodeId, Record};
use crate::time::Timestamp;

/// The bytes are not changes, or not changes of this topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the changes are damaged at byte {at} of {length}: {damage}")]
#[non_exhaustive]
pub struct BadChanges {
    /// Where in the bytes.
    pub at: usize,
    /// How many bytes there are.
    pub length: usize,
    /// What is wrong there.
    pub damage: Damage,
}

/// What is wrong with changes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes end within a value.
    #[error("they end too early")]
    CutShort,
    /// This version of dq does not know this kind of change.
    #[error("a change has the unknown kind {0}")]
    UnknownKind(u8),
    /// A number is too large.
    #[error("a number is too large")]
    Number,
    /// A byte of flags has bits that no version writes, or that contradict each other.
    #[error("the flags {0:#010b} mean nothing")]
    Flags(u8),
    /// The name of a job or of a node is not a text, or not a valid one.
    #[error("a name is not valid")]
    Name,
    /// The change is about a job or broadcast that the topic does not have, or is none that this one can have had.
    #[error("job `{0}` is not one that could change like this")]
    NoRow(JobId),
    /// The change is about the lease of a node that has no rows.
    #[error("node `{0}` has no lease that could change")]
    NoLease(NodeId),
    /// The topic is stopped because an earlier replay or step panicked, which is a defect of dq.
    #[error("the topic is stopped, because an earlier step panicked")]
    Stopped,
}

impl BadChanges {
    /// The topic takes no changes any more.
    pub(crate) const fn stopped() -> Self {
        Self { at: 0, length: 0, damage: Damage::Stopped }
    }
}

/// The longest name of a node.
const MOST_NODE_BYTES: usize = 256;

/// Fences grow by a microsecond a step; so much larger ones would leave no room.
const LAST_FENCE: u64 = u64::MAX >> 1;

/// A record of its own, of these bytes.
pub(super) fn record_of(bytes: &[u8]) -> Record {
    Record::from_bytes(Bytes::copy_from_slice(bytes))
}

/// Reads changes.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    all: &'a [u8],
    left: &'a [u8],
    /// The last time in the group.
    time: u64,
}

/// What follows the flags of a run.
pub(super) type Notes = (Option<Isolation>, Option<Box<PendingCommand>>);

impl<'a> Reader<'a> {
    pub(super) const fn new(all: &'a [u8]) -> Self {
        Self { all, left: all, time: 0 }
    }

    pub(super) fn bad(&self, damage: Damage) -> BadChanges {
        BadChanges { at: self.all.len() - self.left.len(), length: self.all.len(), damage }
    }

    /// The kind of the next group; `None` at the end.
    pub(super) fn group(&mut self) -> Result<Option<u8>, BadChanges> {
        self.time = 0;
        if self.left.is_empty() { Ok(None) } else { self.byte().map(Some) }
    }

    /// The id of the next item; `None` at the end of the group.
    pub(super) fn item(&mut self) -> Result<Option<JobId>, BadChanges> {
        let id = self.bytes()?;
        if id.is_empty() {
            return Ok(None);
        }
        let id = std::str::from_utf8(id).ok().and_then(|id| JobId::new(id).ok());
        id.map(Some).ok_or_else(|| self.bad(Damage::Name))
    }

    pub(super) fn byte(&mut self) -> Result<u8, BadChanges> {
        let (byte, left) = self.left.split_first().ok_or_else(|| self.bad(Damage::CutShort))?;
        self.left = left;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, BadChanges> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(self.bad(Damage::Number));
            }
            number |= part << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.bad(Damage::Number))
    }

    pub(super) fn length(&mut self) -> Result<usize, BadChanges> {
        let number = self.number()?;
        usize::try_from(number).map_err(|_| self.bad(Damage::Number))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], BadChanges> {
        let length = self.length()?;
        let (bytes, left) = self.left.split_at_checked(length).ok_or_else(|| self.bad(Damage::CutShort))?;
        self.left = left;
        Ok(bytes)
    }

    pub(super) fn record(&mut self) -> Result<Record, BadChanges> {
        self.bytes().map(record_of)
    }

    pub(super) fn crashes(&mut self) -> Result<u32, BadChanges> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.bad(Damage::Number))
    }

    pub(super) fn fence(&mut self) -> Result<Fence, BadChanges> {
        match self.number()? {
            number @ 0..=LAST_FENCE => Ok(Fence(number)),
            _ => Err(self.bad(Damage::Number)),
        }
    }

    pub(super) fn node(&mut self) -> Result<NodeId, BadChanges> {
        self.next_node()?.ok_or_else(|| self.bad(Damage::Name))
    }

    /// The name of the next topic or producer; `None` at the end of the group.
    pub(super) fn name(&mut self) -> Result<Option<&'a str>, BadChanges> {
        let name = self.bytes()?;
        let text = std::str::from_utf8(name).ok().filter(|text| text.len() <= 2 * MOST_NODE_BYTES);
        text.map(|text| Some(text).filter(|text| !text.is_empty())).ok_or_else(|| self.bad(Damage::Name))
    }

    /// The name of the next item; `None` at the end of the group.
    pub(super) fn next_node(&mut self) -> Result<Option<NodeId>, BadChanges> {
        let name = self.bytes()?;
        if name.is_empty() {
            return Ok(None);
        }
        let text = std::str::from_utf8(name).ok().filter(|text| text.len() <= MOST_NODE_BYTES);
        text.map(NodeId::new).map(Some).ok_or_else(|| self.bad(Damage::Name))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, BadChanges> {
        let number = self.number()?;
        self.time = self.time.wrapping_add(number >> 1 ^ (number & 1).wrapping_neg());
        Ok(Timestamp::from_millis(self.time))
    }

    /// The place with this number; `None`: RUNNING.
    pub(super) fn place(&self, number: u8) -> Result<Option<TimedPlace>, BadChanges> {
        let Some(at) = usize::from(number).checked_sub(1) else { return Ok(None) };
        TimedPlace::ALL.get(at).copied().map(Some).ok_or_else(|| self.bad(Damage::Flags(number)))
    }

    /// The isolation and the pending command that these flags announce.
    pub(super) fn notes(&mut self, flags: u8) -> Result<Notes, BadChanges> {
        let isolation = match flags & (bits::GROUPED | bits::ALONE) {
            0 => None,
            bits::GROUPED => Some(Isolation::Grouped),
            bits::ALONE => Some(Isolation::Alone),
            _ => return Err(self.bad(Damage::Flags(flags))),
        };
        let pending = if flags & bits::PENDING == 0 { None } else { Some(Box::new(self.pending()?)) };
        Ok((isolation, pending))
    }

    fn pending(&mut self) -> Result<PendingCommand, BadChanges> {
        let flags = self.byte()?;
        let bad = |reader: &Self| Err(reader.bad(Damage::Flags(flags)));
        let how = match flags & bits::END {
            1 => Some(Ended::Acked),
            2 => Some(Ended::Deleted),
            3 => Some(Ended::Cancelled),
            _ => None,
        };
        let fence = if flags & bits::FENCE == 0 { None } else { Some(self.fence()?) };
        if fence.is_some() && how != Some(Ended::Acked) {
            return bad(self);
        }
        let end = how.map(|how| End { how, fence });
        let deliver = match flags & (bits::ONLY_BROADCAST | bits::BOTH) {
            0 => Deliver::Queue,
            bits::ONLY_BROADCAST => Deliver::Broadcast,
            bits::BOTH => Deliver::Both,
            _ => return bad(self),
        };
        if flags & bits::REPLACEMENT == 0 {
            let rest = flags & !(bits::END | bits::FENCE);
            return if rest == 0 { Ok(PendingCommand { end, replacement: None }) } else { bad(self) };
        }
        if flags >> 7 != 0 {
            return bad(self);
        }
        let due = Timestamp::from_millis(self.number()?);
        let job = AddedJob { record: self.record()?, due, deliver };
        let conditional = flags & bits::CONDITIONAL != 0;
        Ok(PendingCommand { end, replacement: Some(Replacement { job, conditional }) })
    }
}
