//! Job sets: jobs of any topics, and one job that is added once when the last of them has ended (rule 18).
//!
//! A set lives in the topic of that job, its *home*. Home writes the adds of the members into its outbox in the step that registers
//! them, so they are members for certain once they are in their topics. The step by which a member ends writes the end into the outbox
//! of the member's topic. Both travel as follow-ups do (rule 18), so each arrives once, and no step touches two topics.

use serde::{Deserialize, Serialize};

use crate::job::{JobId, TopicName};
use crate::store::NewJob;
use crate::time::Timestamp;

/// The most members of a set.
pub const MAX_MEMBERS: u64 = 1_000_000;

/// The most members that one request or one entry of an outbox is about, so that no step takes long.
pub const MAX_MEMBERS_AT_ONCE: usize = 128;

/// The most sets of a topic that have not ended.
pub const MAX_SETS: usize = 10_000;

/// The most members that a query names.
pub const MAX_WAITED_FOR: usize = 1_000;

/// How long a topic remembers a set that has ended, so that a repeated call adds nothing.
pub(crate) const SET_KEPT: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);

/// How many members one step deletes at most once a set [cancels the rest](OnDead::CancelRest).
pub(crate) const CANCELLED_AT_ONCE: usize = 200;

/// The header of the last job of a set with the number of members that were acked.
pub const ACKED_HEADER: &str = "dq-set-acked";
/// The header with the number of members that became DEAD.
pub const DEAD_HEADER: &str = "dq-set-dead";
/// The header with the number of members that ended in another way.
pub const LEFT_HEADER: &str = "dq-set-left";

/// What a member that becomes DEAD does to its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum OnDead {
    /// It has ended.
    #[default]
    Count,
    /// The set waits until the job is requeued and ends, is deleted or acked, or is removed after its retention.
    Wait,
    /// It has ended, and the members that have not are deleted.
    CancelRest,
}

#[cfg(feature = "redis")]
impl OnDead {
    const ALL: [Self; 3] = [Self::Count, Self::Wait, Self::CancelRest];

    /// Its letter in stores.
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::Count => b'c',
            Self::Wait => b'w',
            Self::CancelRest => b'r',
        }
    }

    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|on_dead| on_dead.letter() == letter)
    }
}

/// How a member has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberEnd {
    /// It was acked.
    Acked,
    /// It became DEAD, or was removed while it was and the set waited for it.
    Dead,
    /// It became DEAD, and the rest is cancelled.
    DeadCancels,
    /// It was deleted or cancelled, its add was refused, it is a member of another set now, or another program removed its record.
    Left,
}

#[cfg(feature = "redis")]
impl MemberEnd {
    /// Its letter in scripts.
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::Acked => b'a',
            Self::Dead => b'x',
            Self::DeadCancels => b'r',
            Self::Left => b'l',
        }
    }
}

/// Of which set a job is a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The topic where the set lives.
    pub home: TopicName,
    /// The name of the set.
    pub set: JobId,
    /// What the job does to the set if it becomes DEAD.
    pub on_dead: OnDead,
}

/// A change of one set, at home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetChange {
    /// The name of the set.
    pub set: JobId,
    /// What changes.
    pub what: SetVerb,
}

/// What a [`SetChange`] does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetVerb {
    /// Registers jobs that are not members yet, and adds these to their topics; the first one makes the set.
    Add(OnDead, Vec<(TopicName, NewJob)>),
    /// Takes no more members of callers. This job is added once when all members have ended.
    Close(Box<NewJob>),
    /// Members in this topic have ended.
    End(TopicName, Vec<(JobId, MemberEnd)>),
}

impl SetVerb {
    /// How many jobs it is about.
    pub fn len(&self) -> usize {
        match self {
            Self::Add(_, jobs) => jobs.len(),
            Self::Close(_) => 1,
            Self::End(_, ends) => ends.len(),
        }
    }

    /// Whether it is about none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How far a set has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SetState {
    /// It takes members.
    #[default]
    Open,
    /// It takes members only from handlers of its members.
    Closed,
    /// All members have ended, and the last job was added.
    Ended,
}

#[cfg(feature = "redis")]
impl SetState {
    const ALL: [Self; 3] = [Self::Open, Self::Closed, Self::Ended];

    /// Its letter in stores.
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::Open => b'o',
            Self::Closed => b'c',
            Self::Ended => b'e',
        }
    }

    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.letter() == letter)
    }
}

impl SetState {
    /// The state as a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Ended => "ended",
        }
    }
}

/// How many members a set has, and how many of them have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SetCounts {
    /// All that were ever registered.
    pub members: u64,
    /// Those that were acked.
    pub acked: u64,
    /// Those that became DEAD.
    pub dead: u64,
    /// Those that ended in another way: deleted, cancelled or refused.
    pub left: u64,
}

impl SetCounts {
    /// How many have not ended.
    pub const fn waits_for(&self) -> u64 {
        self.members.saturating_sub(self.acked).saturating_sub(self.dead).saturating_sub(self.left)
    }

    pub(crate) const fn count(&mut self, end: MemberEnd) {
        match end {
            MemberEnd::Acked => self.acked = self.acked.saturating_add(1),
            MemberEnd::Dead | MemberEnd::DeadCancels => self.dead = self.dead.saturating_add(1),
            MemberEnd::Left => self.left = self.left.saturating_add(1),
        }
    }
}

/// A set, as its home has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = JobSet))]
pub struct JobSetSummary {
    /// Its name.
    pub set: JobId,
    /// How far it has come.
    pub state: SetState,
    /// Its members.
    pub counts: SetCounts,
    /// When it got its first member or was closed; once it has ended, when it ended.
    pub since: Timestamp,
    /// Some of the members that have not ended, if the query was about this set: at most [`MAX_WAITED_FOR`].
    pub waits_for: Vec<(TopicName, JobId)>,
}

/// What a home did with a [`SetChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetOutcome {
    /// It is done, or was before.
    Done(JobSetSummary),
    /// Nothing was done.
    Refused(SetRefusal),
}

/// Why a set takes no members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetRefusal {
    /// It is closed.
    #[error("the set is closed: add its members before `then`, or from handlers of its members")]
    Closed,
    /// It has ended.
    #[error("the set has ended: give a new set another name")]
    Ended,
    /// It would have too many.
    #[error("the set would have more than {MAX_MEMBERS} members: use several sets")]
    TooManyMembers,
    /// The topic has too many sets.
    #[error("the topic has {MAX_SETS} sets that have not ended: close them with `then`")]
    TooManySets,
    /// The store has something of this name that dq cannot read.
    #[error(
        "the store has something else under the name of the set: run `dq doctor --repair`, or give the set another name"
    )]
    Unreadable,
}

#[cfg(feature = "redis")]
impl SetRefusal {
    const ALL: [Self; 5] = [Self::Closed, Self::Ended, Self::TooManyMembers, Self::TooManySets, Self::Unreadable];

    /// Its letter in stores.
    pub(crate) const fn letter(self) -> u8 {
        match self {
            Self::Closed => b'C',
            Self::Ended => b'E',
            Self::TooManyMembers => b'M',
            Self::TooManySets => b'S',
            Self::Unreadable => b'U',
        }
    }

    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.letter() == letter)
    }
}

/// Which sets a query is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetsRequest {
    /// The set of this name, with up to so many of the members that have not ended.
    One(JobId, usize),
    /// A page: so many behind the first ones, those first that have not ended, by name.
    Page {
        /// How many come before the page.
        from: usize,
        /// The most.
        limit: usize,
    },
}
