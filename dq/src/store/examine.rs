//! What the doctor asks a store: where its keys and records do not agree, what endangers it, and to repair that.

use bytes::Bytes;

use super::FindingCode;
use super::outbox::{OutboxEntry, OutboxPosition};
use crate::job::{Cause, JobId, Metadata, NodeId, Record, State, TopicName};

/// How many entries of a topic one `examine` looks at, about.
pub const MAX_EXAMINED: usize = 500;

/// Something that does not agree in a topic. Only another program, or a server that evicts keys, does that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mismatch {
    /// What it is.
    pub code: FindingCode,
    /// The topic.
    pub topic: TopicName,
    /// The job, or what the code says.
    pub id: String,
    /// What the code says, or nothing.
    pub detail: String,
}

impl Mismatch {
    #[cfg(feature = "redis")]
    /// What is wrong with the last fence of a topic, if anything. No dq writes one that is not a number.
    pub(crate) fn of_fence(topic: &TopicName, fence: &impl ToString) -> Option<Self> {
        let fence = fence.to_string();
        let number = fence.parse().unwrap_or(if fence.is_empty() { 0 } else { u64::MAX });
        let (code, topic, id) = (FindingCode::FenceTooLarge, topic.clone(), "fence".into());
        crate::job::limits::FENCE.check_kept(number).is_err().then_some(Self { code, topic, id, detail: fence })
    }
}

/// A request to examine a page of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examine {
    /// Where the page begins; `None` means at the beginning.
    pub after: Option<String>,
    /// Nodes that hold jobs and have no lease, as [`examine_keys`](super::Store::examine_keys) found them.
    pub nodes: Vec<NodeId>,
}

/// A row of a topic that another program wrote, or a later version of dq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRow {
    /// The topic.
    pub topic: TopicName,
    /// The key that has it, without what the names of all keys of the topic begin with.
    pub key: String,
    /// Its field or member.
    pub name: Bytes,
    /// Its value or score.
    pub value: Bytes,
    /// What is wrong with it.
    pub reason: String,
}

impl ForeignRow {
    /// What is wrong with a row that this version of dq cannot read. A follow-up among them is lost, unless a version that can read it brings
    /// it to its topic.
    pub(crate) fn unread(follow_up: Option<&OutboxEntry>) -> String {
        follow_up.map_or("it cannot be read, and dq passes it over".into(), |OutboxEntry { target, position, .. }| {
            let at = position.at;
            format!("a follow-up for topic {target} at position {at} cannot be read, so it does not arrive; later ones pass it")
        })
    }
}

/// A page of what a store found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examined {
    /// What does not agree.
    pub mismatches: Vec<Mismatch>,
    /// Rows to be set aside.
    pub foreign: Vec<ForeignRow>,
    /// How many producers the topics of this page remember answers for; only of `examine_keys`. A producer is in one page, but for
    /// names that move while they are read.
    pub producers: Vec<(TopicName, usize)>,
    /// How many entries were looked at.
    pub looked_at: usize,
    /// Where the next page begins; `None` means that this was the last.
    pub next: Option<String>,
}

/// What the doctor repairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// Puts right what does not agree.
    Mismatch {
        /// What does not agree.
        mismatch: Mismatch,
        /// Nodes that hold jobs and have no lease, as [`Examine::nodes`].
        nodes: Vec<NodeId>,
    },
    /// Makes a DELAYED, UNACKED or DEAD job that no node can decode DEAD, with its payload. A job that runs, or that has another payload
    /// by now, is left alone.
    GiveUp(GiveUp),
    /// Moves a row out of the way, unless it has changed. A store that has no place for it leaves it where it is.
    SetAside(ForeignRow),
    /// Sets the position of a source back that the topic has as a target, if it still has this one (rule 18). What the source sends again may arrive
    /// a second time.
    SetBack {
        /// The topic whose follow-ups come.
        source: TopicName,
        /// The position that the topic has.
        from: OutboxPosition,
        /// The position that it gets.
        to: OutboxPosition,
    },
}

/// A job that no node can decode, to be made DEAD with its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GiveUp {
    /// Its id.
    pub id: JobId,
    /// Its record as it was read. If the payload is another one by now, nothing is done.
    pub record: Record,
    /// Why it does not decode.
    pub error: String,
}

impl GiveUp {
    /// The bytes that the job has kept if nobody has changed it: its payload, or all of them if they are no record.
    pub(crate) fn kept(&self) -> &[u8] {
        kept_of(&self.record)
    }

    /// What its metadata become.
    pub(crate) fn metadata(&self) -> Metadata {
        let known = self.record.metadata().unwrap_or_default();
        Metadata { cause: Some(Cause::Decode), error: Some(self.error.clone()), parked_by: None, ..known }
    }

    /// The states from which a job is given up. A node that runs it does that itself.
    pub const FROM: [State; 3] = [State::Delayed, State::Unacked, State::Dead];
}

/// The payload of a record, or all of its bytes if they are no record.
pub(crate) fn kept_of(record: &Record) -> &[u8] {
    record.payload().map_or(record.as_bytes(), |(_, payload)| payload)
}

/// What endangers the jobs of a store as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    /// What it is.
    pub code: FindingCode,
    /// What it is in words.
    pub text: String,
}
