//! Bytes → changes. Every length is compared with the bytes that are left before anything is allocated.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::super::kept::{Item, Kept};
use super::super::places::Run;
use super::change::{Change, Time};
use crate::job::limits::Limit;
use crate::job::{Fence, JobId, NodeId, Token};
use crate::time::Timestamp;

/// The bytes are not changes, or not changes of this topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the changes are damaged at byte {at} of {length}: {damage}")]
#[non_exhaustive]
pub struct BadChanges {
    /// Where the change begins that is damaged.
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
    /// The bytes end within a change.
    #[error("they end too early")]
    CutShort,
    /// The bytes are no change that this version of dq knows.
    #[error("the bytes mean nothing")]
    Unknown,
    /// The id of a job is not valid.
    #[error("the id of a job is not valid")]
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

/// What a replay does with a change of a row that the topic does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// It fails: every row is known.
    Strict,
    /// It goes on: the changes were made while the dump was taken that the topic was loaded from, so the dump may have been
    /// ahead of them, and a later change has the row whole or gone.
    WithinDump,
}

/// Which jobs are loaded: all, or one part of several, by their ids. So a directory that is larger than the memory is read part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayPart {
    number: u64,
    of: u64,
}

impl ReplayPart {
    /// All jobs.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// So many parts, which have about equally many jobs.
    pub fn each(of: u64) -> impl Iterator<Item = Self> {
        (0..of.max(1)).map(move |number| Self { number, of: of.max(1) })
    }

    /// Whether what belongs to no job is loaded with it.
    pub(super) fn is_first(self) -> bool {
        self.number == 0
    }

    pub(super) fn is_whole(self) -> bool {
        self == Self::WHOLE
    }

    pub(super) fn has(self, id: &JobId) -> bool {
        // Another seed than that of the tables, in which the jobs of a part would collide.
        self.is_whole() || FixedState::with_seed(self.of).hash_one(id.as_str()) % self.of == self.number
    }
}

/// What a replay did not apply.
#[derive(Debug, Default)]
pub struct PassedOver {
    /// Rows that were changed, and that the topic does not have. Only within a dump; else there are none.
    pub changed: Vec<JobId>,
    /// Such rows that went.
    pub gone: Vec<JobId>,
    /// What breaks a limit of the format, in words: no step of this version makes it, and it is set aside (rule 5).
    pub aside: Vec<String>,
}

/// Reads changes, and the values in them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    all: &'a [u8],
    left: &'a [u8],
    /// Where the change begins that was read last.
    at: usize,
    pub(super) replay: Replay,
    pub(super) part: ReplayPart,
    /// From where on times count.
    pub(super) origin: u64,
    /// The last claim, and the lease of its node.
    pub(super) claim: Option<(NodeId, Fence, Timestamp)>,
    pub(super) passed: PassedOver,
}

impl<'a> Reader<'a> {
    pub(super) fn new(all: &'a [u8], replay: Replay, part: ReplayPart) -> Self {
        let passed = PassedOver::default();
        Self { all, left: all, at: 0, replay, part, origin: 0, claim: None, passed }
    }

    pub(super) fn bad(&self, damage: Damage) -> BadChanges {
        BadChanges { at: self.at, length: self.all.len(), damage }
    }

    /// The next change; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Change<'a>>, BadChanges> {
        self.at = self.all.len() - self.left.len();
        if self.left.is_empty() {
            return Ok(None);
        }
        let (change, left) = postcard::take_from_bytes(self.left).map_err(|error| match error {
            postcard::Error::DeserializeUnexpectedEnd => self.bad(Damage::CutShort),
            _ => self.bad(Damage::Unknown),
        })?;
        self.left = left;
        Ok(Some(change))
    }

    /// The id, if the job is loaded.
    pub(super) fn id(&self, id: &str) -> Result<Option<JobId>, BadChanges> {
        let id = JobId::new(id).map_err(|_| self.bad(Damage::Name))?;
        Ok(Some(id).filter(|id| self.part.has(id)))
    }

    /// Puts what is kept of this job, if the job is loaded.
    pub(super) fn put<V: Item<JobId>>(
        &self,
        into: &mut Kept<JobId, V>,
        id: &str,
        item: Option<V>,
    ) -> Result<(), BadChanges> {
        if let Some(id) = self.id(id)? {
            into.put(&id, item);
        }
        Ok(())
    }

    /// Whether a number is within its limit. If not, it is set aside under this name.
    pub(super) fn is_within(&mut self, limit: Limit, number: u64, name: impl FnOnce() -> String) -> bool {
        let over = limit.check_kept(number).err();
        self.passed.aside.extend(over.map(|over| format!("{}: {over}", name())));
        over.is_none()
    }

    pub(super) const fn time(&self, time: Time) -> Timestamp {
        Timestamp::from_millis(self.origin.wrapping_add_signed(time))
    }

    /// A run of the last claim, and the lease of its node.
    pub(super) fn claimed(&self, due: Time) -> Result<(Run, Timestamp), BadChanges> {
        let (node, fence, lease) = self.claim.clone().ok_or_else(|| self.bad(Damage::Unknown))?;
        Ok((Run::new(node, Token { fence, due: self.time(due) }), lease))
    }

    /// The topic does not have a row that has changed: damage, unless it was loaded from a dump that was ahead.
    pub(super) fn lacks(&self, id: JobId) -> Result<JobId, BadChanges> {
        match self.replay {
            Replay::Strict => Err(self.bad(Damage::NoRow(id))),
            Replay::WithinDump => Ok(id),
        }
    }
}

/// Where each change ends, and its kind.
#[cfg(test)]
pub(in super::super) fn ends_of(changes: &[u8]) -> Vec<(usize, String)> {
    let mut reader = Reader::new(changes, Replay::Strict, ReplayPart::WHOLE);
    let mut ends = Vec::new();
    while let Some(change) = reader.next().expect("they are sound") {
        let kind = format!("{change:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
        ends.push((changes.len() - reader.left.len(), kind));
    }
    ends
}
