//! The facts that processes write.

use dq::job::State;
use serde::{Deserialize, Serialize};

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When it was written, by the machine's clock, in µs.
    #[serde(rename = "t")]
    pub at: u64,
    /// The fact.
    #[serde(flatten)]
    pub entry: Entry,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
pub enum Entry {
    /// A caller is about to add a job that is due `after` ms later.
    Adding { id: String, after: u64 },
    /// What its add answered.
    Added { id: String, answer: Answer },
    /// A caller is about to add the members with these numbers to a set.
    Members { set: String, from: u64, to: u64 },
    /// What that answered.
    Joined { set: String, from: u64, to: u64, answer: Answer },
    /// What the last job of a set says of its members: how many were acked, are DEAD, and left.
    Counts { id: String, counts: [u64; 3] },
    /// A caller is about to send a command.
    Sending { id: String, verb: Verb },
    /// What the command answered.
    Sent { id: String, verb: Verb, answer: Answer },
    /// A handler began. The due time, µs, is the one that dq told it.
    Start { id: String, fence: u64, due: u64, attempt: u32 },
    /// The handler ended.
    End { id: String, fence: u64, end: End },
    /// `on_exhausted` began for this run, for this cause.
    Final { id: String, fence: u64, cause: String },
    /// The node will run these jobs alone in its process, as it reports to `tracing`.
    Alone { ids: Vec<String> },
    /// What the store answered to the outcome of a run, in the words with which the node reports it to `tracing`.
    Settled { id: String, fence: u64, change: String, verdict: String },
    /// The lease of the node in this topic is provably valid until then, µs, as the node reports it to `tracing`.
    Lease { topic: String, until: u64 },
    /// Something that happened to a process, a group of them (`node-2` is every `node-2.N`), the `store` or `all`, and until when.
    Event { target: String, what: String, from: u64, to: u64 },
    /// A listing of all jobs begins. Nothing else happens in the store until it ends.
    Listing,
    /// A job that the store has.
    Listed { id: String, place: State, cause: Option<String> },
    /// The listing is complete.
    ListingEnd,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Delete, or cancel.
    Delete,
    /// Ack of whatever run, from outside.
    Ack,
    /// Ack of one run, named by its fence.
    AckRun,
    /// Requeue.
    Requeue,
}

/// What a caller was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Done. Of a command: the state in which it found the job, and whether anything changed.
    Done { found: Option<State>, changed: bool },
    /// It was not done and will not be.
    NotDone,
    /// It may have been done, or may still be.
    Unknown,
}

/// How a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It returned an ack.
    Ack,
    /// It returned a rejoin after so many ms.
    Rejoin(u64),
    /// It failed, and the policy retries after so many ms; `None`: never.
    Failed(Option<u64>),
    /// It returned a park.
    Park,
    /// dq dropped it.
    Dropped,
}
