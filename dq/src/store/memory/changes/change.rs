//! What a journal keeps of a topic, change by change.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::super::histories::History;
use super::super::job_sets::{JobSet, Member, MemberState, SetRow};
use super::super::outbox::Kept;
use super::super::taken::TakenId;
use crate::job::{Isolation, JobId, State, TopicName};
use crate::store::raw::Raw;
use crate::store::{
    Drain, HistorySetting, Limit, LimitKind, Membership, OutboxPosition, Pause, PendingCommand, TopicDelay, TopicLimit,
    TopicState,
};
use crate::time::Timestamp;

/// A change, as an absolute value: applying it again changes nothing. The encoding has the number of the variant and then the fields, in
/// this order, so a new variant comes last, and any other difference is another version.
///
/// A `Time` is in ms after the last [`Origin`](Self::Origin) before it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Change<'a> {
    /// From where on times count, in ms since the Unix epoch, up to the next origin.
    Origin(u64),
    /// The row of this job.
    Put(#[serde(borrow)] Row<'a>),
    /// Parts of the row of this job, which is there.
    Part(#[serde(borrow)] RowPart<'a>),
    /// The row of this job is gone.
    Gone(&'a str),
    /// The jobs that follow are claimed by this node under this fence; whether it has released its lease. If not, it holds one, or its process
    /// is dead.
    Claim(&'a str, u64, bool),
    /// A job of the last claim, which is there: its row is RUNNING, with this due time in its token, and without notes.
    Claimed(&'a str, Time),
    /// The waiting broadcast of this id and when it is due, or none.
    Broadcast(&'a str, #[serde(borrow)] Option<(Time, Raw<'a>)>),
    /// Whether this node, which has rows, has released its lease.
    Lease(&'a str, bool),
    /// The state of the topic, without the pauses of its groups.
    State(Box<KeptTopicState>),
    /// The pause of this group, or none.
    PauseOfGroup(&'a str, Option<Cow<'a, Pause>>),
    /// The history of this job, or none.
    History(&'a str, Option<Cow<'a, History>>),
    /// What the topic keeps of histories.
    HistorySetting(HistorySetting),
    /// How long this id stays taken, or that it is free.
    Taken(&'a str, Option<TakenId>),
    /// How far the outbox of a source, by the name of its relay, has come here.
    Position(&'a str, OutboxPosition),
    /// An entry of the outbox for this target: its position, that of the entry before it, what the target does.
    Outbox(TopicName, OutboxPosition, OutboxPosition, #[serde(borrow)] Raw<'a>),
    /// No entry of the outbox for this target is left up to this position.
    OutboxGone(TopicName, OutboxPosition),
    /// Of which set this job is a member, or that it is of none.
    Member(&'a str, Option<Cow<'a, Membership>>),
    /// A job set without its members, and its last job; or no set.
    Set(JobId, #[serde(borrow)] Option<(SetRow, Option<Raw<'a>>)>),
    /// A member of this set.
    SetMember(JobId, Cow<'a, Member>, MemberState),
}

/// A time, in ms after an origin.
pub(super) type Time = i64;

/// A row, whole. A RUNNING one is of the last claim and has notes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row<'a> {
    pub(super) id: &'a str,
    pub(super) place: KeptPlace,
    pub(super) crashes: u32,
    #[serde(borrow)]
    pub(super) record: Raw<'a>,
    pub(super) notes: Option<Notes<'a>>,
}

/// The place of a row: its state, since or until when, which is the due time of a RUNNING one, and whether it has a seat in its group.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptPlace {
    pub(super) state: State,
    pub(super) at: Time,
    pub(super) has_seat: bool,
}

/// What the store has noted about a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Notes<'a> {
    pub(super) isolation: Option<Isolation>,
    pub(super) pending: Option<Cow<'a, Box<PendingCommand>>>,
}

/// What is different in a row.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RowPart<'a> {
    pub(super) id: &'a str,
    /// Never RUNNING.
    pub(super) place: Option<KeptPlace>,
    pub(super) crashes: Option<u32>,
    /// The record becomes these metadata and the last so many bytes of what it was: codec and payload are not written again.
    #[serde(borrow)]
    pub(super) metadata: Option<(Raw<'a>, usize)>,
    #[serde(borrow)]
    pub(super) notes: Option<Notes<'a>>,
}

/// The state of a topic, and of each limit its kind, value, reason, author and time: the encoding of [`TopicState`], which people read, has limits
/// that cannot be read back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptTopicState {
    pause: Option<Pause>,
    drain: Option<Drain>,
    delay: Option<TopicDelay>,
    limits: Vec<(LimitKind, String, String, String, Timestamp)>,
}

impl KeptTopicState {
    pub(super) fn of(TopicState { pause, drain, delay, limits }: TopicState) -> Self {
        let kept = |TopicLimit { limit, reason, by, since }| (Limit::kind(limit), limit.stored(), reason, by, since);
        Self { pause, drain, delay, limits: limits.into_iter().map(kept).collect() }
    }

    /// The state, without limits that have a value that no limit has: these are set aside.
    pub(super) fn read(self, aside: &mut Vec<String>) -> TopicState {
        let Self { pause, drain, delay, limits } = self;
        let limit = |(kind, value, reason, by, since): (LimitKind, String, _, _, _)| {
            let read = kind.stored(&value).map(|limit| TopicLimit { limit, reason, by, since });
            aside.extend(read.is_none().then(|| format!("the limit `{kind}`: `{value}` is not a value of it")));
            read
        };
        TopicState { pause, drain, delay, limits: limits.into_iter().filter_map(limit).collect() }
    }
}

pub(super) fn pause_of_group<'a>(name: &'a SmolStr, pause: Option<&'a Pause>) -> Change<'a> {
    Change::PauseOfGroup(name, pause.map(Cow::Borrowed))
}

pub(super) fn history<'a>(id: &'a JobId, history: Option<&'a History>) -> Change<'a> {
    Change::History(id.as_str(), history.map(Cow::Borrowed))
}

pub(super) fn taken<'a>(id: &'a JobId, taken: Option<&TakenId>) -> Change<'a> {
    Change::Taken(id.as_str(), taken.copied())
}

pub(super) fn member<'a>(id: &'a JobId, of: Option<&'a Membership>) -> Change<'a> {
    Change::Member(id.as_str(), of.map(Cow::Borrowed))
}

impl<'a> Change<'a> {
    pub(super) fn outbox(target: &TopicName, at: u64, kept: &'a Kept) -> Self {
        Self::Outbox(target.clone(), kept.position(at), kept.after, Raw(kept.batch.as_bytes()))
    }

    pub(super) fn set(name: &JobId, set: Option<&'a JobSet>) -> Self {
        let kept = |set: &'a JobSet| (set.row.clone(), set.then.as_ref().map(|then| Raw(then.as_bytes())));
        Self::Set(name.clone(), set.map(kept))
    }

    pub(super) fn set_member(name: &JobId, member: &'a Member, state: MemberState) -> Self {
        Self::SetMember(name.clone(), Cow::Borrowed(member), state)
    }
}
